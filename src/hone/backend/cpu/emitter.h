// backend/cpu/emitter.h - emits one phase of a program as LLVM IR.
#pragma once

#include <span>
#include <string>

#include "hone/backend/cpu/compiler.h"
#include "hone/base/status.h"
#include "hone/ir/in_place.h"
#include "hone/ir/stmt.h"
#include "hone/target/cpu.h"

namespace llvm {
class Module;
}

namespace hone::backend::cpu {

struct EmitLimits {
  int64_t max_statements = 8'000;
  int64_t argument_alignment = 64;
};

struct EmittedPhase {
  int64_t scratch_bytes = 0;
  EmittedLoops loops;
};

// Adds the function `symbol` to the module. The pairs of params that may share their memory are
// ir::in_place_pairs(program).
[[nodiscard]] Result<EmittedPhase> emit_phase(llvm::Module& module, const ir::Program& program,
                                              std::span<const ir::InPlacePair> in_place,
                                              const target::Cpu& target, const EmitLimits& limits,
                                              const ir::Phase& phase, const std::string& symbol);

}  // namespace hone::backend::cpu
