// graph/ops/indices.h - helpers of operators with data-dependent indices.
#pragma once

#include "hone/graph/emit.h"

namespace hone::graph {

// Checks that an operand of indices is i32 or i64.
[[nodiscard]] Status check_indices(const InferContext& c, size_t i);
// Returns the attribute `axis`, which counts from the end if it is negative. It is an error if
// there is no such axis.
[[nodiscard]] Result<size_t> axis_attribute(const InferContext& c, int64_t otherwise);
// Returns the axis for a node whose shapes were inferred.
[[nodiscard]] size_t axis_of(const EmitContext& c, int64_t otherwise);

// Returns the position for an index of any integer type, which counts from the end if it is
// negative. An index outside is clamped to the nearest element, so that no run reads other memory.
[[nodiscard]] ir::Expr place_of(const ir::Expr& given, int64_t extent);

// Returns one axis per dimension of begin .. end, for points or loops.
[[nodiscard]] std::vector<compute::Axis> axes_of(const Shape& shape, size_t begin, size_t end);

// Adds a body that computes each element of result 0 separately, in its memory order; the last
// dimension is a loop inside.
void element_body(EmitContext& c, const StageTag& tag,
                  const std::function<ir::Expr(const std::vector<ir::Expr>& index)>& value);

// Makes a loop for i in 0 .. count, whose count depends on data.
[[nodiscard]] ir::Stmt count_to(
    const char* name, const ir::Expr& count,
    const std::function<std::vector<ir::Stmt>(const ir::Expr& i)>& body);
// Makes that loop vectorized.
[[nodiscard]] ir::Stmt vectors_to(
    const char* name, const ir::Expr& count,
    const std::function<std::vector<ir::Stmt>(const ir::Expr& i)>& body);

// The most operands of an operator that takes any number of them.
inline constexpr int kMostOperands = 100'000;

// Returns where a loop over `most` elements ends: at the number that a run has, which is operand i,
// an i64 [1], or after all of them if that is missing.
[[nodiscard]] ir::Expr end_of_run(EmitContext& c, size_t i, int64_t most);
// Makes serial loops around a body, as loops_over() does. The loop over axis d ends where operand
// `first + d` says.
[[nodiscard]] ir::Stmt loops_over_run(EmitContext& c, const std::vector<compute::Axis>& axes,
                                      size_t first, std::vector<ir::Stmt> body);

// A variable of a body: a scalar on the stack.
struct Local {
  explicit Local(const char* name, DType dtype)
      : buffer(ir::make_buffer(name, dtype, {}, ir::Scope::kStack)) {}
  ir::BufferPtr buffer;
  [[nodiscard]] ir::Expr get() const { return ir::load(buffer, {}); }
  [[nodiscard]] ir::Stmt set(const ir::Expr& value) const {
    return ir::make_store(buffer, {}, value);
  }
};
// Returns the statements inside the allocations of the variables that they use.
[[nodiscard]] ir::Stmt with_locals(const std::vector<Local>& locals, std::vector<ir::Stmt> body);

}  // namespace hone::graph
