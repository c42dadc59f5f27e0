// graph/ops/indices.h - what operators with data-dependent indices share.
#pragma once

#include "hone/graph/emit.h"

namespace hone::graph {

// The type of an operand of indices, checked: i32 or i64.
[[nodiscard]] Status check_indices(const InferContext& c, size_t i);
// The attribute `axis`, counted from the end if it is negative; an error if there is no such axis.
[[nodiscard]] Result<size_t> axis_attribute(const InferContext& c, int64_t otherwise);
// The same for a node whose shapes were inferred.
[[nodiscard]] size_t axis_of(const EmitContext& c, int64_t otherwise);

// The element that an index of any integer type means: it counts from the end if it is negative;
// one outside ends at the nearest element, so that no run reads foreign memory.
[[nodiscard]] ir::Expr place_of(const ir::Expr& given, int64_t extent);

// One axis per dimension of begin .. end, for points or loops.
[[nodiscard]] std::vector<compute::Axis> axes_of(const Shape& shape, size_t begin, size_t end);

// A body that computes each element of result 0 alone, in its memory order; the last dimension is
// a loop inside.
void element_body(EmitContext& c, const StageTag& tag,
                  const std::function<ir::Expr(const std::vector<ir::Expr>& index)>& value);

// for i in 0 .. count, as many times as the body's data say.
[[nodiscard]] ir::Stmt count_to(
    const char* name, const ir::Expr& count,
    const std::function<std::vector<ir::Stmt>(const ir::Expr& i)>& body);
// The same in lanes of vectors.
[[nodiscard]] ir::Stmt vectors_to(
    const char* name, const ir::Expr& count,
    const std::function<std::vector<ir::Stmt>(const ir::Expr& i)>& body);

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
// The statements with the variables that they use.
[[nodiscard]] ir::Stmt with_locals(const std::vector<Local>& locals, std::vector<ir::Stmt> body);

}  // namespace hone::graph
