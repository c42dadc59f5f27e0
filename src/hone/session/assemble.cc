#include "hone/session/assemble.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "hone/base/allocation.h"
#include "hone/base/cancel.h"
#include "hone/base/round_up.h"
#include "hone/graph/size_sums.h"
#include "hone/graph/size_values.h"
#include "hone/ir/in_place.h"
#include "hone/machine/local.h"
#include "hone/runtime/cpu_features.h"
#include "hone/runtime/device_model.h"
#include "hone/session/assemble_loops.h"
#include "hone/session/call_costs.h"
#include "hone/session/call_steps.h"
#include "hone/session/check_arguments.h"
#include "hone/session/shared_code.h"
#include "hone/space/space.h"
#include "hone/target/gpu_devices.h"

namespace hone {
namespace {

// PhaseCall::units of kernels that run together.
constexpr int kUnits = 128;

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

// The kernels of groups, and by group the bytes behind the begin of each argument where the
// kernel's begins; an empty list: none.
struct CompiledGroups {
  GroupKernels kernels;
  std::vector<std::vector<int64_t>> offsets;
};

// Where a kernel may write its result over an operand in the arena.
std::vector<graph::InPlace> in_place_calls(const graph::TaskList& tasks,
                                           const CompiledGroups& compiled) {
  const std::vector<KernelPtr>& kernels = compiled.kernels.own;
  const std::vector<VariantKernels>& variants = compiled.kernels.variants;
  const auto all_may = [&](size_t group, const ir::InPlacePair& pair) {
    const auto may = [&](const VariantKernel& variant) {
      const std::vector<ir::InPlacePair> pairs = ir::in_place_pairs(variant.kernel->program());
      return std::any_of(pairs.begin(), pairs.end(), [&](const ir::InPlacePair& one) {
        return one.input == pair.input && one.output == pair.output;
      });
    };
    return std::all_of(variants[group].others.begin(), variants[group].others.end(), may);
  };
  std::vector<graph::InPlace> result;
  for (const graph::TaskGroup& group : tasks.groups) {
    const auto g = static_cast<size_t>(&group - tasks.groups.data());
    if (!compiled.offsets[g].empty()) continue;  // results are parts of larger ones
    for (const ir::InPlacePair& pair : ir::in_place_pairs(kernels[g]->program())) {
      if (!all_may(g, pair)) continue;
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

// Marks the steps of calls that run together, and those of calls too small for all threads; each
// has one, or one for each interval of sizes.
void join_steps(const graph::RunOrder& order, std::span<const graph::CallCost> costs,
                const TogetherOptions& options, Assembly& assembly) {
  const auto cost_of = [&](int call) -> const graph::CallCost& {
    return costs[static_cast<size_t>(call)];
  };
  const auto steps_of = [&](int call) {
    const auto first = std::find(assembly.calls.begin(), assembly.calls.end(), call);
    const auto last = std::find_if(first, assembly.calls.end(), [&](int c) { return c != call; });
    return std::span(assembly.spec.steps)
        .subspan(static_cast<size_t>(first - assembly.calls.begin()),
                 static_cast<size_t>(last - first));
  };
  for (const std::vector<int>& group : order) {
    if (group.size() == 1) {
      const graph::CallCost& cost = cost_of(group[0]);
      const int threads = threads_of(cost, options);
      if (threads >= std::min<int64_t>(cost.tiles, options.threads)) continue;
      steps_of(group[0])[0].max_threads = threads;
      assembly.small += threads == 1 ? 1 : 0;
      continue;
    }
    double all = 0;
    for (const int call : group) all += cost_of(call).seconds;
    for (const int call : group) {
      const double units = std::round(cost_of(call).seconds / all * kUnits);
      for (artifact::ArtifactStep& step : steps_of(call)) {
        step.joins = call != group.front() || &step != &steps_of(call)[0];
        step.units = std::max(1, static_cast<int>(units));
        step.max_threads = 0;
      }
    }
  }
}

// One kernel per group, in the order of the groups; then all variants.
std::vector<KernelPtr> all_kernels(const GroupKernels& compiled) {
  std::vector<KernelPtr> all = compiled.own;
  for (const VariantKernels& variants : compiled.variants)
    for (const VariantKernel& variant : variants.others) all.push_back(variant.kernel);
  return all;
}

// Code for the host of a kernel that a device cannot run, with the default schedule.
Result<KernelPtr> host_kernel(const compute::Dag& dag) {
  const target::Target& host = machine::local().target();
  HONE_ASSIGN_OR_RETURN(const space::Space space,
                        space::Space::create(dag, host, trial::Accuracy::kStrict));
  HONE_ASSIGN_OR_RETURN(Kernel kernel, build_kernel(dag, space.steps(space.default_point()), host));
  return std::make_shared<const Kernel>(std::move(kernel));
}

// A kernel with these limits, and its variants for smaller sizes.
Result<VariedKernel> compile_kernel(Session& session, const compute::Dag& dag, uint64_t key,
                                    const schedule::Steps& steps, const KernelLimits& limits,
                                    const SizeVariants* variants) {
  const TaskPtr task = session.tasks().get(dag, key);
  const auto compile = [&](const schedule::Steps& of) {
    return limits.any() ? limited_kernel(session, task, of, limits)
                        : session.kernels().build(task, of);
  };
  return compile_varied(steps, limits.any() ? variants : nullptr, task->dag(), limits, compile);
}

// Compiles the kernels of all groups.
class GroupCompiler {
 public:
  GroupCompiler(Session& session, const graph::TaskList& tasks,
                std::span<const schedule::Steps> schedules, const std::atomic<bool>* interrupted,
                HostKernels host, const AssemblyLimits& limits)
      : session_(session),
        tasks_(tasks),
        schedules_(schedules),
        interrupted_(interrupted),
        host_(host),
        limits_(limits),
        kernels_{std::vector<KernelPtr>(tasks.groups.size()),
                 std::vector<VariantKernels>(tasks.groups.size()),
                 std::vector<VariantUse>(tasks.groups.size())},
        shared_(tasks.groups.size()),
        statuses_(tasks.groups.size()) {}

  Result<CompiledGroups> run() {
    const InPhase compiling(session_.phases(), Phase::kCompiling);
    if (session_.target().kind() == target::Kind::kCpu)
      shared_ = find_shared_code(tasks_, schedules_, limits_);
    compile_shared();
    HONE_RETURN_IF_ERROR(check_cancelled(interrupted_));
    for (size_t i = 0; i < statuses_.size(); ++i) {
      if (!statuses_[i].ok())
        return error(statuses_[i].code(), "{}: {}", first_call(i).name, statuses_[i].message());
    }
    std::vector<std::vector<int64_t>> offsets(shared_.size());
    for (size_t i = 0; i < shared_.size(); ++i) {
      if (!shared_[i]) continue;
      kernels_.own[i] = kernels_.own[shared_[i]->leader];
      kernels_.uses[i] = kernels_.uses[shared_[i]->leader];
      offsets[i] = shared_[i]->offsets;
    }
    return CompiledGroups{std::move(kernels_), std::move(offsets)};
  }

 private:
  [[nodiscard]] const graph::TaskCall& first_call(size_t group) const {
    return tasks_.calls[static_cast<size_t>(tasks_.groups[group].calls[0])];
  }

  // Compiles shared code for its leaders, and the code of all other groups. Schedules were chosen
  // for the groups' own tasks, which may have code where the shared one fails.
  void compile_shared() {
    std::vector<bool> wanted(shared_.size());
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = !shared_[i] || shared_[i]->leader == i;
    compile(wanted);
    for (size_t i = 0; i < wanted.size(); ++i)
      wanted[i] = shared_[i] && !statuses_[shared_[i]->leader].ok();
    if (std::ranges::count(wanted, true) == 0) return;
    for (size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i]) shared_[i].reset();
    compile(wanted);
  }

  void compile(const std::vector<bool>& wanted) {
    session_.pool().parallel_for(std::ssize(wanted), [&](int64_t g) {
      const auto i = static_cast<size_t>(g);
      if (!wanted[i] || is_cancelled(interrupted_)) return;
      const AllocatesFor purpose(fmt::format("the kernel of node '{}'", first_call(i).name));
      statuses_[i] = compile_group(i);
    });
  }

  Status compile_group(size_t i) {
    static const KernelLimits no_limits;
    const KernelLimits& own = i < limits_.kernels.size() ? limits_.kernels[i] : no_limits;
    const SizeVariants* variants = limits_.variants.empty() ? nullptr : &limits_.variants[i];
    Result<VariedKernel> made =
        shared_[i] ? compile_kernel(session_, shared_[i]->dag, compute::task_key(shared_[i]->dag),
                                    schedules_[i], shared_[i]->limits, nullptr)
                   : compile_kernel(session_, first_call(i).dag, tasks_.groups[i].key,
                                    schedules_[i], own, variants);
    if (host_ == HostKernels::kWhereNeeded && made.status().code() == Code::kUnsupported) {
      HONE_ASSIGN_OR_RETURN(KernelPtr kernel, host_kernel(first_call(i).dag));
      made = VariedKernel{std::move(kernel), {}, {}};
    }
    HONE_RETURN_IF_ERROR(made.status());
    kernels_.own[i] = std::move(made->own);
    kernels_.variants[i] = std::move(made->variants);
    kernels_.uses[i] = made->use;
    return ok_status();
  }

  Session& session_;
  const graph::TaskList& tasks_;
  const std::span<const schedule::Steps> schedules_;
  const std::atomic<bool>* interrupted_;
  const HostKernels host_;
  const AssemblyLimits& limits_;
  GroupKernels kernels_;
  std::vector<std::optional<SharedCode>> shared_;
  std::vector<Status> statuses_;
};

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
  static_assert(graph::kMaxForms == runtime::kMaxForms &&
                graph::kMostDivisor == runtime::kMostDivisor);
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
    made.least = form.least;
    made.most = form.most;
    for (const graph::SizeTerm& term : form.terms) {
      made.terms.push_back({term.factor, term.symbols});
      for (int& factor : made.terms.back().symbols) {
        if (factor < 0)
          factor = static_cast<int>(spec.symbols.size()) + graph::form_of_factor(factor);
      }
    }
  }
}

// The runs that leave out steps of calls which they do not need.
void leave_out_steps(std::span<const std::optional<ir::RunNeed>> runs, Assembly& assembly) {
  for (size_t s = 0; s < assembly.calls.size() && !runs.empty(); ++s) {
    const auto& run = runs[static_cast<size_t>(assembly.calls[s])];
    if (run) assembly.spec.steps[s].run = {run->form, run->least};
  }
}

}  // namespace

Result<KernelPtr> limited_kernel(Session& session, const TaskPtr& task,
                                 const schedule::Steps& steps, const KernelLimits& limits) {
  HONE_ASSIGN_OR_RETURN(const LoweredPtr lowered, session.kernels().lower(task, steps));
  HONE_ASSIGN_OR_RETURN(Kernel kernel,
                        build_limited(task->dag(), lowered, steps, session.target(), limits));
  return std::make_shared<const Kernel>(std::move(kernel));
}

Result<Assembly> assemble(Session& session, const graph::TaskList& tasks,
                          std::span<const schedule::Steps> schedules,
                          const std::atomic<bool>* interrupted, const TogetherOptions& together,
                          HostKernels host, const AssemblyLimits& limits) {
  HONE_ASSERT(schedules.size() == tasks.groups.size(), "one schedule per group");
  HONE_ASSIGN_OR_RETURN(const CompiledGroups groups,
                        GroupCompiler(session, tasks, schedules, interrupted, host, limits).run());
  const GroupKernels& compiled = groups.kernels;
  const std::vector<KernelPtr>& kernels = compiled.own;
  const InPhase packing(session.phases(), Phase::kPacking);
  HONE_RETURN_IF_ERROR(check_arguments(tasks, kernels, groups.offsets));
  const std::vector<graph::InPlace> in_place = in_place_calls(tasks, groups);
  const std::vector<graph::CallCost> costs = call_costs(tasks, compiled, together);
  const graph::RunPlan run = graph::plan_run(
      tasks, costs, in_place,
      {.threads = together.threads,
       .fork_join_seconds = trial::fork_join_seconds(together.fork_join, together.threads)},
      together.arena);
  HONE_RETURN_IF_ERROR(graph::verify(run.order, tasks));
  HONE_RETURN_IF_ERROR(graph::verify(run.memory, tasks, in_place));

  Assembly assembly;
  assembly.plan = run.memory;
  assembly.uses = compiled.uses;
  artifact::ArtifactSpec& spec = assembly.spec;
  spec.zeroed = run.memory.zeroed;
  set_device(session.target(), spec);
  find_on_host(session.target(), kernels, assembly);
  add_tensors(tasks, run.memory, spec);
  add_sizes(tasks, run.memory, spec);
  const std::vector<int> first_symbol = add_kernels(all_kernels(compiled), spec);
  CallSteps steps(session, tasks, compiled, groups.offsets, first_symbol, run.memory, together,
                  assembly);
  for (const int c : graph::in_order(run.order)) {
    HONE_RETURN_IF_ERROR(check_cancelled(interrupted));
    HONE_RETURN_IF_ERROR(steps.add(c));
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
