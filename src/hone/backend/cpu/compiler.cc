#include "hone/backend/cpu/compiler.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Verifier.h>

#include <algorithm>

#include "hone/backend/cpu/check_symbols.h"
#include "hone/backend/cpu/emit_object.h"
#include "hone/backend/cpu/emitter.h"
#include "hone/base/clock.h"
#include "hone/base/hash.h"
#include "hone/ir/in_place.h"

namespace hone::backend::cpu {
namespace {

int registers_in(const ir::StmtNode& s, const target::Cpu& target) {
  int inside = 0;
  for (const ir::Stmt& child : s.body) inside = std::max(inside, registers_in(*child, target));
  if (s.kind != ir::StmtKind::kAlloc || s.buffer->scope != ir::Scope::kRegister) return inside;
  const std::vector<int64_t>& shape = s.buffer->shape;
  const int64_t lanes =
      std::max<int64_t>(1, target.lanes(static_cast<int>(dtype_bytes(s.buffer->dtype))));
  const int64_t row = shape.empty() ? 1 : std::max<int64_t>(shape.back(), 1);
  const int64_t vectors = s.buffer->num_elements() / row * ((row + lanes - 1) / lanes);
  return inside + static_cast<int>(std::min<int64_t>(vectors, 1 << 20));
}

uint64_t hash_without(std::string_view object, std::string_view prefix) {
  uint64_t hash = 0;
  for (;;) {
    const size_t at = object.find(prefix);
    hash = hash_string(object.substr(0, at), hash);
    if (at == std::string_view::npos) return hash;
    object.remove_prefix(at + prefix.size());
  }
}

int64_t count_instructions(const llvm::Module& module) {
  int64_t instructions = 0;
  for (const llvm::Function& function : module) instructions += function.getInstructionCount();
  return instructions;
}

}  // namespace

Result<ObjectCode> compile(const ir::Program& program, const target::Cpu& target,
                           const CompileOptions& options) {
  const double start = thread_seconds();
  llvm::LLVMContext context;
  llvm::Module module("kernel", context);  // a name that the object carries
  HONE_RETURN_IF_ERROR(prepare_module(module, target));
  ObjectCode out;
  const std::vector<ir::InPlacePair> in_place = ir::in_place_pairs(program);
  for (const ir::Phase& phase : program.phases) {
    out.phases.push_back({fmt::format("{}_{}", options.symbol_prefix, out.phases.size()),
                          phase.num_tiles(), phase.prepare});
    HONE_ASSIGN_OR_RETURN(const EmittedPhase emitted,
                          emit_phase(module, program, in_place, target,
                                     {options.max_statements, options.argument_alignment}, phase,
                                     out.phases.back().symbol));
    out.loops.push_back(emitted.loops);
    out.scratch_bytes = std::max(out.scratch_bytes, emitted.scratch_bytes);
    out.cost.instructions = count_instructions(module);
    if (out.cost.instructions > options.max_instructions)
      return error(Code::kUnsupported, "more than {} instructions after unrolling",
                   options.max_instructions);
  }
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(module, &stream))
    return error(Code::kInternal, "bug: {} became invalid LLVM code: {}", program.name, problem);
  const double emitted = thread_seconds();
  optimize(module, target);
  const double optimized = thread_seconds();
  out.cost.optimized = count_instructions(module);
  if (options.keep_assembly) {
    HONE_ASSIGN_OR_RETURN(out.assembly, emit_assembly(module, target));
  }
  const double written = thread_seconds();
  HONE_ASSIGN_OR_RETURN(out.object, emit_object(module, target));
  HONE_RETURN_IF_ERROR(check_symbols(out.object, program));
  out.cost.emit = emitted - start;
  out.cost.optimize = optimized - emitted;
  out.cost.generate = thread_seconds() - written;
  HONE_ASSIGN_OR_RETURN(out.text_bytes, text_bytes(out.object));
  out.content = hash_without(out.object, options.symbol_prefix);
  return out;
}

int registers_needed(const ir::Program& program, const target::Cpu& target) {
  int most = 0;
  for (const ir::Phase& phase : program.phases)
    most = std::max(most, registers_in(*phase.body, target));
  return most == 0 ? 0 : most + 2;
}

}  // namespace hone::backend::cpu
