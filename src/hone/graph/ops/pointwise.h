// graph/ops/pointwise.h - helpers of pointwise operators.
#pragma once

#include "hone/graph/emit.h"
#include "hone/graph/evaluate.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {

// Returns a constant of the type in which `like` is computed.
[[nodiscard]] inline ir::Expr lit(const ir::Expr& like, double value) {
  return literal(like->type, value);
}
template <ir::Op op>
[[nodiscard]] ir::Expr apply(const ir::Expr& x) {
  return ir::make(op, {x});
}
// Both return the greater, or the lesser, of a number and x; NaN if x is NaN. (ir::min and ir::max
// return a NaN in the second operand.)
[[nodiscard]] inline ir::Expr at_least(double number, const ir::Expr& x) {
  return ir::max(lit(x, number), x);
}
[[nodiscard]] inline ir::Expr at_most(double number, const ir::Expr& x) {
  return ir::min(lit(x, number), x);
}
[[nodiscard]] inline ir::Expr clamp(const ir::Expr& x, double low, double high) {
  return at_most(high, at_least(low, x));
}
// Returns log(1 + x), which is as accurate for small x as for large ones.
[[nodiscard]] ir::Expr log1p(const ir::Expr& x);

// Adds one stage whose value is f(operand 0).
template <typename F>
void emit_unary(EmitContext& c, const char* tag, const F& f) {
  c.pointwise(tag, [&](const Point& point) { return f(c.operand(0, "data", point)); });
}

// A shape rule: the type and shape are those of operand 0, which must be a float.
[[nodiscard]] Status infer_float_unary(InferContext& c);
// A shape rule: the type and shape are those of operand 0, which may be any number.
[[nodiscard]] Status infer_number_unary(InferContext& c);
// Returns the broadcast shape of all operands.
[[nodiscard]] Result<Shape> broadcast_operands(const InferContext& c);
// These are shape rules for broadcast operands of one type: integers, numbers or floats.
[[nodiscard]] Status infer_integer_binary(InferContext& c);
[[nodiscard]] Status infer_binary(InferContext& c);
[[nodiscard]] Status infer_float_binary(InferContext& c);

// These tell whether a result is never negative (Op::non_negative): always, if all operands are
// not, or if the first one is not.
[[nodiscard]] bool always(const Graph& graph, const Node& node, const std::vector<bool>& known);
[[nodiscard]] bool like_operands(const Graph& graph, const Node& node,
                                 const std::vector<bool>& known);
[[nodiscard]] bool like_operand(const Graph& graph, const Node& node,
                                const std::vector<bool>& known);

// Returns the definition of an operator with one operand.
[[nodiscard]] Op unary_op(std::string_view name, void (*emit)(EmitContext&), int since = 1,
                          std::string_view attributes = {}, bool non_negative = false);

}  // namespace hone::graph
