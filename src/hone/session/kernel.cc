#include "hone/session/kernel.h"

#include <algorithm>
#include <set>
#include <thread>

#include "hone/backend/cpu/code_cache.h"
#include "hone/base/allocation.h"
#include "hone/ir/visit.h"
#include "hone/machine/local.h"
#include "hone/runtime/float_mode.h"
#include "hone/schedule/lower.h"
#include "hone/session/loaded_kernel.h"

namespace hone {
namespace {

void collect_buffers(const ir::StmtNode& stmt, std::set<const ir::Buffer*>& buffers) {
  buffers.insert(stmt.buffer.get());
  for (const ir::BufferPtr& buffer : stmt.buffers) buffers.insert(buffer.get());
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

// The phases of loaded code, one after the other.
Status run_loaded(const backend::cpu::ObjectCode& code, const backend::cpu::LoadedCode& loaded,
                  bool prepare_only, std::span<Tensor> arguments, int threads) {
  std::vector<void*> pointers;
  for (Tensor& argument : arguments) pointers.push_back(argument.data());
  for (const backend::cpu::Phase& phase : code.phases) {
    if (prepare_only && !phase.prepare) continue;
    const auto function = reinterpret_cast<hone_kernel>(loaded.symbol(phase.symbol));
    if (!function) return error(Code::kInternal, "compiled code has no symbol {}", phase.symbol);
    HONE_RETURN_IF_ERROR(
        run_tiles(function, phase.num_tiles, code.scratch_bytes, pointers.data(), threads));
  }
  return ok_status();
}

// The phases of code made for this machine, one after the other.
Status run_phases(const backend::cpu::ObjectCode& code, bool prepare_only,
                  std::span<Tensor> arguments, int threads) {
  const bool apart = prepare_only && !code.prepare_object.empty();
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<backend::cpu::LoadedCode> loaded,
                        apart ? backend::cpu::LoadedCode::load(code.prepare_object)
                              : backend::cpu::LoadedCode::load(code.object, code.prepare_object));
  return run_loaded(code, *loaded, prepare_only, arguments, threads);
}

void add_workspaces(const Kernel& kernel, std::span<Tensor> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ir::Param& param = kernel.program().params[i];
    if (param.role == ir::Role::kWorkspace)
      arguments[i] = Tensor(param.buffer->dtype, param.buffer->shape);
  }
}

}  // namespace

Result<LoweredPtr> lower_kernel(const compute::Dag& dag, const schedule::Steps& steps,
                                const target::Target& target) {
  LoweredKernel lowered;
  HONE_ASSIGN_OR_RETURN(lowered.program,
                        schedule::lower(dag, steps, {.parameters = target.passes}));
  lowered.used = used_params(lowered.program);
  return std::make_shared<const LoweredKernel>(std::move(lowered));
}

Result<Kernel> build_kernel(LoweredPtr lowered, const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(backend::cpu::ObjectCode code,
                        backend::cpu::compile_once(lowered->program, target));
  return Kernel{std::move(lowered), std::move(code)};
}

Result<Kernel> build_kernel(const compute::Dag& dag, const schedule::Steps& steps,
                            const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(LoweredPtr lowered, lower_kernel(dag, steps, target));
  return build_kernel(std::move(lowered), target);
}

Status run_tiles(hone_kernel function, int64_t num_tiles, int64_t scratch_bytes, void* const* args,
                 int threads) {
  const int64_t parts = std::clamp<int64_t>(threads, 1, std::max<int64_t>(num_tiles, 1));
  std::vector<int> codes(static_cast<size_t>(parts), 0);
  const auto work = [&](int64_t part) {
    const Scratch scratch(scratch_bytes);
    const runtime::FloatMode mode(runtime::Denormals::kKept);
    codes[static_cast<size_t>(part)] =
        function(args, scratch.data, num_tiles * part / parts, num_tiles * (part + 1) / parts,
                 static_cast<int>(part));
  };
  std::vector<std::thread> workers;
  for (int64_t part = 1; part < parts; ++part) workers.push_back(start_thread([=] { work(part); }));
  work(0);
  for (std::thread& worker : workers) worker.join();
  for (const int code : codes) {
    if (code != 0) return error(Code::kInternal, "a kernel failed with code {}", code);
  }
  return ok_status();
}

Status prepare(const Kernel& kernel, const target::Target& target, std::span<Tensor> arguments,
               int threads) {
  fill_constants(kernel, arguments);
  if (std::none_of(kernel.code.phases.begin(), kernel.code.phases.end(),
                   [](const backend::cpu::Phase& phase) { return phase.prepare; })) {
    return ok_status();
  }
  // Packed bytes are the same whoever computes them; foreign code is made once more for this
  // machine.
  backend::cpu::ObjectCode local;
  const backend::cpu::ObjectCode* code = &kernel.code;
  const target::Target& here = machine::local().target();
  if (target::device_key(target) != target::device_key(here)) {
    ir::Program program = kernel.program();
    std::erase_if(program.phases, [](const ir::Phase& phase) { return !phase.prepare; });
    HONE_ASSIGN_OR_RETURN(local, backend::cpu::compile_once(program, here));
    code = &local;
  }
  return run_phases(*code, true, arguments, threads);
}

Status run(const Kernel& kernel, std::span<Tensor> arguments, int threads) {
  fill_constants(kernel, arguments);
  add_workspaces(kernel, arguments);
  return run_phases(kernel.code, false, arguments, threads);
}

Result<LoadedKernel> LoadedKernel::load(Kernel kernel) {
  HONE_ASSIGN_OR_RETURN(
      std::unique_ptr<backend::cpu::LoadedCode> code,
      backend::cpu::LoadedCode::load(kernel.code.object, kernel.code.prepare_object));
  return LoadedKernel(std::move(kernel), std::move(code));
}

Status LoadedKernel::run(std::span<Tensor> arguments, int threads) const {
  fill_constants(kernel_, arguments);
  add_workspaces(kernel_, arguments);
  return run_loaded(kernel_.code, *code_, false, arguments, threads);
}

}  // namespace hone
