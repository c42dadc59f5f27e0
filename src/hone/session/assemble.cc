#include "hone/session/assemble.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "hone/analysis/cpu_measure.h"
#include "hone/base/allocation.h"
#include "hone/base/cancel.h"
#include "hone/base/hash.h"
#include "hone/base/round_up.h"
#include "hone/compute/bytes_moved.h"
#include "hone/graph/size_values.h"
#include "hone/ir/in_place.h"
#include "hone/machine/local.h"
#include "hone/runtime/cpu_features.h"
#include "hone/runtime/device_model.h"
#include "hone/session/check_arguments.h"
#include "hone/space/space.h"
#include "hone/target/gpu_devices.h"

namespace hone {
namespace {

// PhaseCall::units of kernels that run together.
constexpr int kUnits = 128;

// Each distinct content once; hands out indices in the order of first use.
class WeightTable {
 public:
  explicit WeightTable(Assembly& assembly) : assembly_(assembly) {}

  // Those of a kernel's arguments that phases of the model read: an index per param, or -1.
  std::vector<int> add_used(const Kernel& kernel, std::span<const Tensor> arguments) {
    std::vector<int> indices;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const ir::Role role = kernel.program().params[i].role;
      const bool constant = role == ir::Role::kConstant || role == ir::Role::kPacked;
      indices.push_back(kernel.used()[i] && constant ? add(arguments[i]) : -1);
    }
    return indices;
  }

 private:
  int add(const Tensor& tensor) {
    const auto bytes = static_cast<size_t>(tensor.bytes());
    const uint64_t hash = hash_bytes(tensor.data(), bytes);
    for (auto [it, end] = index_.equal_range(hash); it != end; ++it) {
      const Tensor& other = assembly_.weights[static_cast<size_t>(it->second)];
      if (other.bytes() == tensor.bytes() && std::memcmp(other.data(), tensor.data(), bytes) == 0)
        return it->second;
    }
    const int index = static_cast<int>(assembly_.weights.size());
    assembly_.weights.push_back(tensor);
    assembly_.spec.weights.push_back({tensor.data(), tensor.bytes()});
    index_.emplace(hash, index);
    return index;
  }

  Assembly& assembly_;
  std::multimap<uint64_t, int> index_;
};

std::vector<std::string> checked_features(const target::Cpu& target) {
  std::vector<std::string> names;
  for (const std::string& feature : target.features) {
    if (!feature.starts_with('+')) continue;
    std::string name = feature.substr(1);
    if (runtime::cpu_feature(name.c_str()) != runtime::FeatureState::kUnknown)
      names.push_back(std::move(name));
  }
  return names;
}

// Says where the library runs: on CPUs with some features, or on a device.
void set_device(const target::Target& target, artifact::ArtifactSpec& spec) {
  if (target.kind() == target::Kind::kCpu) {
    spec.features = checked_features(target.cpu());
    return;
  }
  spec.device = target::driver_kind(target.gpu());
  spec.device_name = target::driver_name(target.gpu());
}

// Notes which groups run on the host beside a device. Their code is for this machine's CPU.
void find_on_host(const target::Target& target, std::span<const KernelPtr> kernels,
                  Assembly& assembly) {
  if (target.kind() == target::Kind::kCpu) return;
  for (size_t g = 0; g < kernels.size(); ++g) {
    if (kernels[g]->executable.kind == target::Kind::kCpu) assembly.on_host.push_back(g);
  }
  if (!assembly.on_host.empty())
    assembly.spec.features = checked_features(machine::local().target().cpu());
}

// The arguments of a call's kernel as tensors: constants given, packed weights computed.
Result<std::vector<Tensor>> constant_arguments(const graph::TaskList& tasks,
                                               const graph::TaskCall& call, const Kernel& kernel,
                                               const target::Target& target, int threads) {
  std::vector<Tensor> arguments(kernel.program().params.size());
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const graph::Argument& argument = call.arguments[i];
    if (argument.kind != graph::Argument::Kind::kConstant) continue;
    arguments[i] = tasks.constants[static_cast<size_t>(argument.index)];
  }
  HONE_RETURN_IF_ERROR(prepare(kernel, target, arguments, threads));
  return arguments;
}

// Where a kernel may write its result over an operand in the arena.
std::vector<graph::InPlace> in_place_calls(const graph::TaskList& tasks,
                                           std::span<const KernelPtr> kernels) {
  std::vector<graph::InPlace> result;
  for (const graph::TaskGroup& group : tasks.groups) {
    const auto g = static_cast<size_t>(&group - tasks.groups.data());
    for (const ir::InPlacePair& pair : ir::in_place_pairs(kernels[g]->program())) {
      for (const int c : group.calls) {
        const std::vector<graph::Argument>& arguments =
            tasks.calls[static_cast<size_t>(c)].arguments;
        const graph::Argument &in = arguments[pair.input], &out = arguments[pair.output];
        if (in.kind == graph::Argument::Kind::kArena && out.kind == graph::Argument::Kind::kArena)
          result.push_back({c, in.index, out.index});
      }
    }
  }
  return result;
}

double tiles_of_busiest(int64_t tiles, int threads) {
  return static_cast<double>((tiles + threads - 1) / threads);
}

// With the model, not before it.
bool runs(const backend::EntryPoint& phase) { return !phase.prepare; }

// Returns the time of each call on one thread. A kernel with several phases must wait between them
// and shares its workspace, so it runs alone. So does one whose time is not known.
std::vector<graph::CallCost> call_costs(const graph::TaskList& tasks,
                                        std::span<const KernelPtr> kernels,
                                        const TogetherOptions& options) {
  std::vector<graph::CallCost> costs;
  for (const graph::TaskCall& call : tasks.calls) {
    const auto g = static_cast<size_t>(call.group);
    const std::vector<backend::EntryPoint>& phases = kernels[g]->executable.entries;
    const auto phase = std::find_if(phases.begin(), phases.end(), runs);
    const double seconds = options.seconds.empty() ? 0 : options.seconds[g];
    graph::CallCost cost;
    cost.alone = std::count_if(phases.begin(), phases.end(), runs) != 1 ||
                 !std::isfinite(seconds) || seconds <= 0;
    for (const ir::Param& param : kernels[g]->program().params)
      cost.alone |= param.role == ir::Role::kWorkspace;
    if (!cost.alone) {
      const auto tiles = std::max<int64_t>(phase->num_tiles, 1);
      const double fork_join = tiles > 1 && options.threads > 1 ? analysis::kForkJoinSeconds : 0;
      cost.tiles = tiles;
      cost.seconds = std::max(seconds - fork_join, 0.1 * seconds) * static_cast<double>(tiles) /
                     tiles_of_busiest(tiles, options.threads);
    }
    costs.push_back(cost);
  }
  return costs;
}

// On how many threads a call that runs for itself takes the least time; on fewer than all if more
// would save less than half of what their fork and join takes longer: it is a prediction.
int threads_of(const graph::CallCost& cost, const TogetherOptions& options) {
  const int all = static_cast<int>(std::min<int64_t>(cost.tiles, options.threads));
  if (cost.alone || all < 2) return all;
  const auto seconds = [&](int threads) {
    return cost.seconds * tiles_of_busiest(cost.tiles, threads) / static_cast<double>(cost.tiles) +
           0.5 * trial::fork_join_seconds(options.fork_join, threads);
  };
  int best = all;
  for (int threads = 1; threads < all; threads *= 2) {
    if (seconds(threads) < seconds(best)) best = threads;
  }
  return best;
}

// Marks the steps of calls that run together, and those of calls too small for all threads; each
// call has one.
void join_steps(const graph::RunOrder& order, std::span<const graph::CallCost> costs,
                const TogetherOptions& options, Assembly& assembly) {
  const auto cost_of = [&](int call) -> const graph::CallCost& {
    return costs[static_cast<size_t>(call)];
  };
  const auto step_of = [&](int call) -> artifact::ArtifactStep& {
    const auto at = std::find(assembly.calls.begin(), assembly.calls.end(), call);
    return assembly.spec.steps[static_cast<size_t>(at - assembly.calls.begin())];
  };
  for (const std::vector<int>& group : order) {
    if (group.size() == 1) {
      const graph::CallCost& cost = cost_of(group[0]);
      const int threads = threads_of(cost, options);
      if (threads >= std::min<int64_t>(cost.tiles, options.threads)) continue;
      step_of(group[0]).max_threads = threads;
      assembly.small += threads == 1 ? 1 : 0;
      continue;
    }
    double all = 0;
    for (const int call : group) all += cost_of(call).seconds;
    for (const int call : group) {
      artifact::ArtifactStep& step = step_of(call);
      step.joins = call != group.front();
      step.units = std::max(1, static_cast<int>(std::lround(cost_of(call).seconds / all * kUnits)));
    }
  }
}

std::string kernel_text(const graph::TaskCall& call) {
  return fmt::format("the kernel of node '{}'", call.name);
}

// Code for the host of a kernel that a device cannot run, with the default schedule.
Result<KernelPtr> host_kernel(const compute::Dag& dag) {
  const target::Target& host = machine::local().target();
  HONE_ASSIGN_OR_RETURN(const space::Space space,
                        space::Space::create(dag, host, trial::Accuracy::kStrict));
  HONE_ASSIGN_OR_RETURN(Kernel kernel, build_kernel(dag, space.steps(space.default_point()), host));
  return std::make_shared<const Kernel>(std::move(kernel));
}

// Code that leaves out what a run of smaller sizes does not need.
Result<KernelPtr> limited_kernel(Session& session, const TaskPtr& task,
                                 const schedule::Steps& steps, const KernelLimits& limits) {
  HONE_ASSIGN_OR_RETURN(const LoweredPtr lowered, session.kernels().lower(task, steps));
  HONE_ASSIGN_OR_RETURN(Kernel kernel,
                        build_limited(task->dag(), lowered, steps, session.target(), limits));
  return std::make_shared<const Kernel>(std::move(kernel));
}

// One kernel per group.
Result<std::vector<KernelPtr>> compile_kernels(Session& session, const graph::TaskList& tasks,
                                               std::span<const schedule::Steps> schedules,
                                               const std::atomic<bool>* interrupted,
                                               HostKernels host,
                                               std::span<const KernelLimits> limits) {
  const auto first_call = [&](size_t group) -> const graph::TaskCall& {
    return tasks.calls[static_cast<size_t>(tasks.groups[group].calls[0])];
  };
  const InPhase compiling(session.phases(), Phase::kCompiling);
  std::vector<KernelPtr> kernels(tasks.groups.size());
  std::vector<Status> statuses(tasks.groups.size());
  session.pool().parallel_for(std::ssize(kernels), [&](int64_t g) {
    const auto i = static_cast<size_t>(g);
    if (is_cancelled(interrupted)) return;
    const AllocatesFor purpose(kernel_text(first_call(i)));
    const TaskPtr task = session.tasks().get(first_call(i).dag, tasks.groups[i].key);
    const bool is_limited = i < limits.size() && limits[i].any();
    Result<KernelPtr> kernel = is_limited ? limited_kernel(session, task, schedules[i], limits[i])
                                          : session.kernels().build(task, schedules[i]);
    if (host == HostKernels::kWhereNeeded && kernel.status().code() == Code::kUnsupported)
      kernel = host_kernel(first_call(i).dag);
    if (kernel.ok())
      kernels[i] = std::move(kernel).value();
    else
      statuses[i] = kernel.status();
  });
  HONE_RETURN_IF_ERROR(check_cancelled(interrupted));
  for (size_t i = 0; i < statuses.size(); ++i) {
    if (!statuses[i].ok())
      return error(statuses[i].code(), "{}: {}", first_call(i).name, statuses[i].message());
  }
  return kernels;
}

// Symbols and objects: the phases that run with the model, of all groups one after the other; those
// of groups whose programs are equal once. Returns where each group's begin.
std::vector<int> add_kernels(std::span<const KernelPtr> kernels, artifact::ArtifactSpec& spec) {
  std::vector<int> first_symbol;
  std::map<std::string, int> known;  // by the symbol of the first phase that runs
  for (const KernelPtr& kernel : kernels) {
    const int next = static_cast<int>(spec.kernel_symbols.size());
    const std::vector<backend::EntryPoint>& phases = kernel->executable.entries;
    const auto run = std::find_if(phases.begin(), phases.end(), runs);
    const backend::EntryPoint& first = run != phases.end() ? *run : phases[0];
    const auto [place, added] = known.emplace(first.symbol, next);
    first_symbol.push_back(place->second);
    if (!added) continue;
    for (const backend::EntryPoint& phase : phases) {
      if (runs(phase)) spec.kernel_symbols.push_back(phase.symbol);
    }
    spec.scratch_bytes = std::max(spec.scratch_bytes, kernel->executable.scratch_bytes);
    spec.executables.push_back(kernel->executable);
  }
  return first_symbol;
}

artifact::ArtifactDims dims_of(const std::vector<graph::ShapeParts>& all, size_t i) {
  artifact::ArtifactDims dims;
  if (i >= all.size()) return dims;
  for (const graph::DimParts& parts : all[i]) {
    dims.emplace_back();
    for (const graph::SizePart& part : parts) dims.back().push_back({part.form, part.most});
  }
  return dims;
}

void add_tensors(const graph::TaskList& tasks, const graph::MemoryPlan& plan,
                 artifact::ArtifactSpec& spec) {
  for (size_t i = 0; i < tasks.inputs.size(); ++i) {
    const graph::TensorInfo& info = tasks.inputs[i];
    spec.inputs.push_back(
        {info.name, info.dtype, info.shape, -1, dims_of(tasks.varying.inputs, i)});
  }
  for (size_t i = 0; i < tasks.outputs.size(); ++i) {
    const graph::TensorInfo& info = tasks.outputs[i];
    const int64_t extents = info.extents < 0 ? -1 : plan.offsets[static_cast<size_t>(info.extents)];
    spec.outputs.push_back(
        {info.name, info.dtype, info.shape, extents, dims_of(tasks.varying.outputs, i)});
  }
}

// Sizes that the shapes of the inputs decide.
void add_sizes(const graph::TaskList& tasks, const graph::MemoryPlan& plan,
               artifact::ArtifactSpec& spec) {
  static_assert(graph::kMaxForms == runtime::kMaxForms);
  if (tasks.sizes < 0) return;
  spec.sizes = plan.offsets[static_cast<size_t>(tasks.sizes)];
  for (size_t s = 0; s < tasks.varying.symbols.size(); ++s) {
    const graph::SizeSymbol& symbol = tasks.varying.symbols[s];
    spec.symbols.push_back(
        {symbol.name, symbol.min, symbol.max, graph::step_of(tasks.varying, static_cast<int>(s))});
  }
  for (const graph::SizeForm& form : tasks.varying.forms) {
    artifact::ArtifactForm& made = spec.forms.emplace_back();
    made.offset = form.offset;
    made.divisor = form.divisor;
    for (const graph::SizeTerm& term : form.terms)
      made.terms.push_back({term.factor, term.symbols});
  }
}

// A call's arguments: `weights`, the index of a weight per param or -1; then what the call names;
// then workspaces, one behind the other from `workspace` on, which becomes their end. What only
// prepare phases use may be anything. `sizes` is the place of the run's sizes in the arena.
std::vector<artifact::ArtifactArgument> arguments_of(const graph::TaskCall& call,
                                                     const Kernel& kernel,
                                                     const std::vector<int>& weights,
                                                     const graph::MemoryPlan& plan, int64_t sizes,
                                                     int64_t& workspace) {
  const std::vector<ir::Param>& params = kernel.program().params;
  std::vector<artifact::ArtifactArgument> arguments(params.size());
  for (size_t i = 0; i < params.size(); ++i) {
    artifact::ArtifactArgument& argument = arguments[i];
    if (weights[i] >= 0) {
      argument = {artifact::ArgumentKind::kWeight, weights[i], 0};
    } else if (i < call.arguments.size()) {
      const graph::Argument& from = call.arguments[i];
      if (from.kind == graph::Argument::Kind::kInput)
        argument = {artifact::ArgumentKind::kInput, from.index, 0};
      if (from.kind == graph::Argument::Kind::kOutput)
        argument = {artifact::ArgumentKind::kOutput, from.index, 0};
      if (from.kind == graph::Argument::Kind::kArena)
        argument.offset = plan.offsets[static_cast<size_t>(from.index)];
    } else if (params[i].role == ir::Role::kInput) {
      argument.offset = sizes;
    } else if (params[i].role == ir::Role::kWorkspace) {
      argument.offset = workspace;
      workspace += round_up(params[i].buffer->bytes(), graph::MemoryPlan::kAlignment);
    }
    argument.bytes = params[i].buffer->bytes();
    argument.written =
        params[i].role == ir::Role::kWorkspace || params[i].role == ir::Role::kOutput;
  }
  return arguments;
}

// A step for each phase of a call; the first symbol is that of its group.
void add_steps(int call_index, const graph::TaskCall& call, const Kernel& kernel, int symbol,
               std::vector<artifact::ArtifactArgument> arguments, Assembly& assembly) {
  artifact::ArtifactStep step;
  step.name = call.name;
  step.kernel_class = compute::kernel_class(call.dag);
  step.flops = compute::flops(call.dag);
  step.bytes = compute::bytes_moved(call.dag);
  step.arguments = std::move(arguments);
  const std::vector<backend::EntryPoint>& phases = kernel.executable.entries;
  for (size_t p = 0; p < phases.size(); ++p) {
    if (!runs(phases[p])) continue;
    step.kernel = symbol++;
    step.num_tiles = phases[p].num_tiles;
    step.limit = {};
    if (p < kernel.tiles.size()) {
      const ir::TileLimit& limit = kernel.tiles[p];
      step.limit = {limit.form, limit.divisor, limit.multiplier};
    }
    assembly.spec.steps.push_back(step);
    assembly.calls.push_back(call_index);
    step.flops = step.bytes = 0;  // counted once, with the first phase
  }
}

// The runs that leave out steps of calls which they do not need.
void leave_out_steps(std::span<const std::optional<ir::RunNeed>> runs, Assembly& assembly) {
  for (size_t s = 0; s < assembly.calls.size() && !runs.empty(); ++s) {
    const auto& run = runs[static_cast<size_t>(assembly.calls[s])];
    if (run) assembly.spec.steps[s].run = {run->form, run->least};
  }
}

// The loops, when all steps are there.
void add_loops(const graph::TaskList& tasks, const graph::MemoryPlan& plan, Assembly& assembly) {
  const auto place = [&](int buffer) {
    return buffer < 0 ? -1 : plan.offsets[static_cast<size_t>(buffer)];
  };
  // The number of steps before a begin or end.
  const auto steps_before = [&](int boundary) {
    // The steps are in the order of the boundaries before them.
    const auto end =
        std::partition_point(assembly.calls.begin(), assembly.calls.end(),
                             [&](int call) { return tasks.boundaries_before(call) <= boundary; });
    return static_cast<uint32_t>(end - assembly.calls.begin());
  };
  artifact::ArtifactSpec& spec = assembly.spec;
  for (const graph::TaskLoop& loop : tasks.loops) {
    artifact::ArtifactLoop& made = spec.loops.emplace_back();
    made.name = loop.name;
    made.beyond = loop.beyond;
    made.plan = {.most = loop.most,
                 .condition = place(loop.condition),
                 .limit = place(loop.limit),
                 .turn = place(loop.turn),
                 .turns = place(loop.turns),
                 .first_step = steps_before(loop.begin),
                 .end_step = steps_before(loop.end),
                 .first_copy = static_cast<uint32_t>(spec.copies.size()),
                 .num_copies = static_cast<uint32_t>(loop.copies.size()),
                 .num_nested = static_cast<uint32_t>(loop.nested)};
    for (const graph::LoopCopy& copy : loop.copies)
      spec.copies.push_back(
          {place(copy.from), place(copy.to) + copy.start, copy.bytes, copy.stride});
  }
}

}  // namespace

Result<Assembly> assemble(Session& session, const graph::TaskList& tasks,
                          std::span<const schedule::Steps> schedules,
                          const std::atomic<bool>* interrupted, const TogetherOptions& together,
                          HostKernels host, const AssemblyLimits& limits) {
  HONE_ASSERT(schedules.size() == tasks.groups.size(), "one schedule per group");
  HONE_ASSIGN_OR_RETURN(
      const std::vector<KernelPtr> kernels,
      compile_kernels(session, tasks, schedules, interrupted, host, limits.kernels));
  const InPhase packing(session.phases(), Phase::kPacking);
  HONE_RETURN_IF_ERROR(check_arguments(tasks, kernels));
  const std::vector<graph::InPlace> in_place = in_place_calls(tasks, kernels);
  const std::vector<graph::CallCost> costs = call_costs(tasks, kernels, together);
  const graph::RunPlan run = graph::plan_run(
      tasks, costs, in_place,
      {.threads = together.threads,
       .fork_join_seconds = trial::fork_join_seconds(together.fork_join, together.threads)},
      together.arena);
  HONE_RETURN_IF_ERROR(graph::verify(run.order, tasks));
  HONE_RETURN_IF_ERROR(graph::verify(run.memory, tasks, in_place));

  Assembly assembly;
  assembly.plan = run.memory;
  artifact::ArtifactSpec& spec = assembly.spec;
  spec.zeroed = run.memory.zeroed;
  set_device(session.target(), spec);
  find_on_host(session.target(), kernels, assembly);
  add_tensors(tasks, run.memory, spec);
  add_sizes(tasks, run.memory, spec);
  const std::vector<int> first_symbol = add_kernels(kernels, spec);

  // Constants of equal calls are packed once; workspaces of a call lie behind the arena, for all
  // calls at one place, because calls that have one run one after the other.
  WeightTable weights(assembly);
  std::map<std::pair<int, uint64_t>, std::vector<int>> packed;  // weight index per param, or -1
  const int64_t workspace_base = round_up(run.memory.arena_bytes, graph::MemoryPlan::kAlignment);
  spec.arena_bytes = workspace_base;
  for (const int c : graph::in_order(run.order)) {
    HONE_RETURN_IF_ERROR(check_cancelled(interrupted));
    const graph::TaskCall& call = tasks.calls[static_cast<size_t>(c)];
    const auto group = static_cast<size_t>(call.group);
    const auto [entry, fresh] =
        packed.try_emplace({call.group, graph::constants_hash(tasks, call)});
    if (fresh) {
      const AllocatesFor purpose(kernel_text(call));
      HONE_ASSIGN_OR_RETURN(const std::vector<Tensor> arguments,
                            constant_arguments(tasks, call, *kernels[group], session.target(),
                                               session.pool().threads()));
      entry->second = weights.add_used(*kernels[group], arguments);
    }
    int64_t workspace = workspace_base;
    std::vector<artifact::ArtifactArgument> arguments =
        arguments_of(call, *kernels[group], entry->second, run.memory, spec.sizes, workspace);
    spec.arena_bytes = std::max(spec.arena_bytes, workspace);
    add_steps(c, call, *kernels[group], first_symbol[group], std::move(arguments), assembly);
  }
  leave_out_steps(limits.runs, assembly);
  join_steps(run.order, costs, together, assembly);
  add_loops(tasks, run.memory, assembly);
  assembly.turns = static_cast<int>(run.order.size());
  return assembly;
}

ModelMemory memory_of(const artifact::ArtifactSpec& spec, int threads) {
  ModelMemory memory;
  memory.weights = artifact::weight_offsets(spec).back();
  for (const backend::Executable& executable : spec.executables)
    memory.code += std::ssize(executable.code.str());
  memory.working = spec.arena_bytes + spec.scratch_bytes * threads;
  // A device has its own inputs and outputs, and so has a run that is smaller than the largest.
  const bool on_device = spec.device != runtime::DeviceKind::kNone;
  for (const auto* tensors : {&spec.inputs, &spec.outputs}) {
    for (const artifact::ArtifactTensor& tensor : *tensors)
      if (on_device || !tensor.dims.empty())
        memory.working += round_up(num_elements(tensor.shape) * dtype_bytes(tensor.dtype),
                                   runtime::kArrayAlignment);
  }
  return memory;
}

}  // namespace hone
