#include "hone/session/kernel.h"

#include <algorithm>
#include <set>
#include <thread>

#include "hone/backend/registry.h"
#include "hone/base/allocation.h"
#include "hone/graph/size_form.h"
#include "hone/ir/verifier.h"
#include "hone/ir/visit.h"
#include "hone/machine/local.h"
#include "hone/runtime/float_mode.h"
#include "hone/session/decided_params.h"
#include "hone/session/loaded_kernel.h"

namespace hone {
namespace {

void collect_buffers(const ir::StmtNode& stmt, std::set<const ir::Buffer*>& buffers) {
  buffers.insert(stmt.buffer.get());
  for (const ir::BufferPtr& buffer : stmt.buffers) buffers.insert(buffer.get());
  for (const ir::Box& box : stmt.boxes) buffers.insert(box.buffer.get());
  ir::for_each_expr(stmt, [&](const ir::Expr& expr) {
    ir::visit(expr, [&](const ir::Expr& node) { buffers.insert(node->buffer.get()); });
  });
}

std::vector<bool> used_params(const ir::Program& program) {
  std::set<const ir::Buffer*> buffers;  // and null; looked up only, never iterated
  for (const ir::Phase& phase : program.phases) {
    if (phase.prepare) continue;
    ir::for_each_stmt(*phase.body, [&](const ir::StmtNode& s) { collect_buffers(s, buffers); });
  }
  std::vector<bool> used;
  for (const ir::Param& param : program.params)
    used.push_back(buffers.contains(param.buffer.get()));
  return used;
}

struct Scratch {
  explicit Scratch(int64_t bytes) : data(allocate_aligned(bytes)) {}
  ~Scratch() { std::free(data); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* data;
};

// Of a kernel's program: the constants that the Dag carries, and memory for what is packed.
void fill_constants(const Kernel& kernel, std::span<Tensor> arguments) {
  HONE_ASSERT(arguments.size() == kernel.program().params.size(), "one argument per param");
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ir::Param& param = kernel.program().params[i];
    const ir::Buffer& buffer = *param.buffer;
    if (!buffer.values.empty()) {
      arguments[i] = Tensor(buffer.dtype, buffer.shape);
      for (size_t j = 0; j < buffer.values.size(); ++j)
        arguments[i].set(static_cast<int64_t>(j), buffer.values[j]);
    } else if (param.role == ir::Role::kPacked) {
      arguments[i] = Tensor(buffer.dtype, buffer.shape);
    }
  }
}

// The phases, one after the other.
Status run_loaded(const backend::Executable& executable, const backend::LoadedExecutable& loaded,
                  std::span<Tensor> arguments, int threads) {
  std::vector<void*> pointers;
  for (Tensor& argument : arguments) pointers.push_back(argument.data());
  for (const backend::EntryPoint& entry : executable.entries) {
    const auto run = [&](void* scratch, int64_t first, int64_t last, int thread) {
      return loaded.run(entry, pointers.data(), scratch, first, last, thread);
    };
    HONE_RETURN_IF_ERROR(run_tiles(run, entry.num_tiles, executable.scratch_bytes, threads));
  }
  return ok_status();
}

Status run_executable(const backend::Executable& executable, std::span<Tensor> arguments,
                      int threads) {
  HONE_ASSIGN_OR_RETURN(const backend::LoadedPtr loaded, backend::load(executable));
  return run_loaded(executable, *loaded, arguments, threads);
}

// Packed bytes are the same whoever computes them, so the phases of a program for another device
// are compiled once more for this machine.
Result<backend::Executable> packing_code(const Kernel& kernel, const target::Target& target) {
  const target::Target& here = machine::local().target();
  if (target.kind() == here.kind() && target::device_key(target) == target::device_key(here))
    return prepare_part(kernel.executable);
  ir::Program program = kernel.program();
  std::erase_if(program.phases, [](const ir::Phase& phase) { return !phase.prepare; });
  return backend::compile(program, here);
}

// Returns the dimensions of the results that end where the sizes of a run say, each size once.
std::vector<ir::RunExtent> extents_of_runs(const compute::Dag& dag, const KernelLimits& limits,
                                           const ir::BufferPtr& sizes) {
  std::vector<ir::RunExtent> extents;
  std::set<int> forms;
  for (const auto& [param, limit] : limits.outputs) {
    if (limit.period > 0 || !forms.insert(limit.form).second) continue;
    const int64_t most = dag.params[param].buffer->shape[static_cast<size_t>(limit.dimension)];
    const ir::Expr end = ir::load(sizes, {ir::constant(limit.form)}) * limit.unit + limit.offset;
    const ir::Expr count = ir::floordiv(end + (limit.scale - 1), limit.scale);
    extents.push_back({ir::min(ir::max(count, ir::constant(1)), ir::constant(most)), most});
  }
  return extents;
}

bool has_param(const ir::Program& program, const ir::BufferPtr& buffer) {
  return std::ranges::count(program.params, buffer, &ir::Param::buffer) > 0;
}

void add_workspaces(const Kernel& kernel, std::span<Tensor> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ir::Param& param = kernel.program().params[i];
    if (param.role == ir::Role::kWorkspace)
      arguments[i] = Tensor(param.buffer->dtype, param.buffer->shape);
  }
}

}  // namespace

LoweredPtr make_lowered(search::ProgramPtr program) {
  std::vector<bool> used = used_params(*program);
  return std::make_shared<const LoweredKernel>(LoweredKernel{std::move(program), std::move(used)});
}

Result<Kernel> build_kernel(LoweredPtr lowered, const schedule::Steps& steps,
                            const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(backend::Executable executable,
                        backend::compile(*lowered->program, target, schedule::to_string(steps)));
  return Kernel{std::move(lowered), std::move(executable)};
}

Result<Kernel> build_limited(const compute::Dag& dag, const LoweredPtr& lowered,
                             const schedule::Steps& steps, const target::Target& target,
                             const KernelLimits& limits) {
  const ir::BufferPtr sizes = ir::make_sizes(graph::kMaxForms);
  compute::Dag ended = with_ends(dag, limits, sizes);
  if (limits.ends.empty()) ended.params.push_back({sizes, ir::Role::kInput});
  target::Target early = target;
  early.passes.prefetch_blocks.is_early = true;
  early.passes.prefetch_blocks.run_extents = extents_of_runs(dag, limits, sizes);
  HONE_ASSIGN_OR_RETURN(const search::ProgramPtr program,
                        search::lower_schedule(ended, steps, early));
  ir::LimitOptions options;
  if (!limits.decided.empty()) options.first_of_kernel = limits.decided_from;
  ir::LimitedProgram limited = ir::limit_loops(*program, limits.outputs, sizes, options);
  const bool is_plain = !limited.changed && limits.ends.empty();
  if (is_plain && limits.decided.empty()) return build_kernel(lowered, steps, target);
  limited.program = with_decided_params(std::move(limited.program), limits, sizes);
  if (const Status valid = ir::verify(limited.program); !valid.ok())
    return error(Code::kInternal, "bug: with the ends of its loops: {}", valid.message());
  auto made = std::make_shared<const ir::Program>(std::move(limited.program));
  HONE_ASSIGN_OR_RETURN(Kernel kernel, build_kernel(make_lowered(std::move(made)), steps, target));
  if (has_param(kernel.program(), sizes)) kernel.tiles = std::move(limited.tiles);
  return kernel;
}

Result<Kernel> build_kernel(const compute::Dag& dag, const schedule::Steps& steps,
                            const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(search::ProgramPtr program, search::lower_schedule(dag, steps, target));
  return build_kernel(make_lowered(std::move(program)), steps, target);
}

Status run_tiles(const TileRun& run, int64_t num_tiles, int64_t scratch_bytes, int threads) {
  const int64_t parts = std::clamp<int64_t>(threads, 1, std::max<int64_t>(num_tiles, 1));
  std::vector<Status> statuses(static_cast<size_t>(parts));
  const auto work = [&](int64_t part) {
    const Scratch scratch(scratch_bytes);
    const runtime::FloatMode mode(runtime::Denormals::kKept);
    statuses[static_cast<size_t>(part)] =
        run(scratch.data, num_tiles * part / parts, num_tiles * (part + 1) / parts,
            static_cast<int>(part));
  };
  std::vector<std::thread> workers;
  for (int64_t part = 1; part < parts; ++part) workers.push_back(start_thread([=] { work(part); }));
  work(0);
  for (std::thread& worker : workers) worker.join();
  for (const Status& status : statuses) HONE_RETURN_IF_ERROR(status);
  return ok_status();
}

Status prepare(const Kernel& kernel, const target::Target& target, std::span<Tensor> arguments,
               int threads) {
  fill_constants(kernel, arguments);
  if (!kernel.executable.prepares_constants()) return ok_status();
  HONE_ASSIGN_OR_RETURN(const backend::Executable packing, packing_code(kernel, target));
  return run_executable(packing, arguments, threads);
}

Status run(const Kernel& kernel, std::span<Tensor> arguments, int threads) {
  fill_constants(kernel, arguments);
  add_workspaces(kernel, arguments);
  return run_executable(kernel.executable, arguments, threads);
}

Result<LoadedKernel> LoadedKernel::load(Kernel kernel) {
  HONE_ASSIGN_OR_RETURN(backend::LoadedPtr code, backend::load(kernel.executable));
  return LoadedKernel(std::move(kernel), std::move(code));
}

Status LoadedKernel::run(std::span<Tensor> arguments, int threads) const {
  fill_constants(kernel_, arguments);
  add_workspaces(kernel_, arguments);
  return run_loaded(kernel_.executable, *code_, arguments, threads);
}

}  // namespace hone
