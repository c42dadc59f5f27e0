#include "hone/graph/ops/pointwise.h"

namespace hone::graph {

// With d = (1 + x) - 1, which is exact, log(1 + d) / d hardly differs from log(1 + x) / x.
ir::Expr log1p(const ir::Expr& x) {
  const ir::Expr w = x + lit(x, 1);
  const ir::Expr d = w - lit(x, 1);
  const ir::Expr ratio = ir::select(ir::make(ir::Op::kEq, {d, x}), lit(x, 1), x / d);
  return ir::select(ir::make(ir::Op::kEq, {d, lit(x, 0)}), x, apply<ir::Op::kLog>(w) * ratio);
}

Status infer_float_unary(InferContext& c) {
  if (!is_float(c.dtype(0)))
    return c.fail("operand of type {}, expected a float", dtype_name(c.dtype(0)));
  return c.set(0, c.dtype(0), c.shape(0));
}

Status infer_number_unary(InferContext& c) {
  if (c.dtype(0) == DType::kBool) return c.fail("operand of type bool, expected a number");
  return c.set(0, c.dtype(0), c.shape(0));
}

Result<Shape> broadcast_operands(const InferContext& c) {
  Shape shape = c.shape(0);
  for (size_t i = 1; i < c.num_inputs(); ++i) {
    if (!c.has(i)) return c.fail("operand {} is missing", i);
    const auto joined = broadcast(shape, c.shape(i));
    if (!joined)
      return c.fail("operands of shapes {} and {}", to_string(shape), to_string(c.shape(i)));
    shape = *joined;
  }
  return shape;
}

namespace {

Status infer_same_type(InferContext& c) {
  HONE_ASSIGN_OR_RETURN(Shape shape, broadcast_operands(c));
  for (size_t i = 1; i < c.num_inputs(); ++i) {
    if (c.dtype(i) != c.dtype(0)) {
      return c.fail("operands of types {} and {}", dtype_name(c.dtype(0)), dtype_name(c.dtype(i)));
    }
  }
  return c.set(0, c.dtype(0), std::move(shape));
}

Status expected(const InferContext& c, const char* what) {
  return c.fail("operands of type {}, expected {}", dtype_name(c.dtype(0)), what);
}

}  // namespace

Status infer_binary(InferContext& c) {
  if (c.dtype(0) == DType::kBool) return expected(c, "numbers");
  return infer_same_type(c);
}

Status infer_float_binary(InferContext& c) {
  if (!is_float(c.dtype(0))) return expected(c, "floats");
  return infer_same_type(c);
}

Status infer_integer_binary(InferContext& c) {
  if (is_float(c.dtype(0)) || c.dtype(0) == DType::kBool) return expected(c, "integers");
  return infer_same_type(c);
}

bool always(const Graph&, const Node&, const std::vector<bool>&) { return true; }

bool like_operands(const Graph&, const Node& node, const std::vector<bool>& known) {
  for (const ValueId in : node.inputs) {
    if (in == kNoValue || !known[static_cast<size_t>(in)]) return false;
  }
  return true;
}

bool like_operand(const Graph&, const Node& node, const std::vector<bool>& known) {
  return known[static_cast<size_t>(node.inputs[0])];
}

Op unary_op(std::string_view name, void (*emit)(EmitContext&), int since,
            std::string_view attributes, bool non_negative) {
  return {.name = name,
          .since = since,
          .kind = Kind::kElementwise,
          .layout = Layout::kFollow,
          .attributes = attributes,
          .infer = infer_float_unary,
          .fold = evaluate_node,
          .emit = emit,
          .non_negative = non_negative ? always : nullptr};
}

}  // namespace hone::graph
