// backend/cpu/test_support.h - runs programs as machine code and compares the results with the
// interpreter's.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hone/backend/cpu/compiler.h"
#include "hone/target/target.h"
#include "hone/tensor/tensor.h"

namespace hone::backend::cpu {

// Returns the x86-64 descriptions that this machine can execute; empty on another architecture.
[[nodiscard]] std::vector<target::Target> runnable_targets();

// Compiles and runs all phases. Tiles are run in two parts, as two threads would do.
[[nodiscard]] Status run_machine_code(const ir::Program& program, const target::Target& target,
                                      std::span<Tensor> args);

// Returns "" if machine code and interpreter agree on all outputs for every runnable target, else
// the difference. Floats may differ by tolerance * max(1, largest value of the output). Outputs
// that may overwrite an input are also tested that way.
[[nodiscard]] std::string compare_with_interpreter(const ir::Program& program, uint64_t seed,
                                                   double tolerance = 1e-5);

// These are short names for building programs.
inline constexpr ir::ForKind kSerial = ir::ForKind::kSerial;
inline constexpr ir::ForKind kVector = ir::ForKind::kVectorized;
[[nodiscard]] ir::Stmt loop(const ir::VarPtr& v, int64_t extent, ir::ForKind kind,
                            std::vector<ir::Stmt> body);
[[nodiscard]] ir::Program program_of(std::vector<ir::Param> params, ir::Stmt body);

}  // namespace hone::backend::cpu
