// backend/results_testing.h - compares what code of a back end computed with what the interpreter
// did.
#pragma once

#include <span>
#include <string>

#include "hone/ir/stmt.h"
#include "hone/tensor/tensor.h"

namespace hone::backend::testing {

[[nodiscard]] inline bool is_written(const ir::Param& param) {
  return param.role != ir::Role::kInput && param.role != ir::Role::kConstant;
}
// Fills a tensor with the initial values of the interpreter's outputs.
void fill_with_garbage(Tensor& t);

// Returns "" if the outputs, and what was packed, are the same, else the first difference. Floats
// may differ by tolerance * max(1, largest value of the output).
[[nodiscard]] std::string difference(const ir::Program& program, std::span<const Tensor> expected,
                                     std::span<const Tensor> found, double tolerance);

// Returns whether the result of a random program is defined. The interpreter starts allocations as
// NaN: a program that reads one before it writes it may show a NaN.
[[nodiscard]] bool is_defined(const ir::Program& program, uint64_t seed);

}  // namespace hone::backend::testing
