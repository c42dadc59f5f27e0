// Comparisons, logic, bits and choice.
#include <limits>

#include "hone/graph/ops/pointwise.h"

namespace hone::graph {
namespace {

using ir::Expr;

template <typename F>
void emit_pair(EmitContext& c, const char* tag, const F& f) {
  c.pointwise(tag, [&](const Point& point) {
    const Expr a = c.operand(0, "data", point);
    return f(a, c.operand(1, "other", point));
  });
}

Status infer_comparison(InferContext& c) {
  HONE_ASSIGN_OR_RETURN(Shape shape, broadcast_operands(c));
  if (c.dtype(0) != c.dtype(1))
    return c.fail("operands of types {} and {}", dtype_name(c.dtype(0)), dtype_name(c.dtype(1)));
  return c.set(0, DType::kBool, std::move(shape));
}

Status infer_logic(InferContext& c) {
  for (size_t i = 0; i < c.num_inputs(); ++i) {
    if (c.dtype(i) != DType::kBool)
      return c.fail("operand {} of type {}, expected bool", i, dtype_name(c.dtype(i)));
  }
  return infer_comparison(c);
}

Status infer_not(InferContext& c) {
  if (c.dtype(0) != DType::kBool)
    return c.fail("operand of type {}, expected bool", dtype_name(c.dtype(0)));
  return c.set(0, DType::kBool, c.shape(0));
}

Status infer_test(InferContext& c) {
  if (!is_float(c.dtype(0)))
    return c.fail("operand of type {}, expected a float", dtype_name(c.dtype(0)));
  return c.set(0, DType::kBool, c.shape(0));
}

Status infer_where(InferContext& c) {
  HONE_ASSIGN_OR_RETURN(Shape shape, broadcast_operands(c));
  if (c.dtype(0) != DType::kBool)
    return c.fail("a condition of type {}, expected bool", dtype_name(c.dtype(0)));
  if (c.dtype(1) != c.dtype(2))
    return c.fail("operands of types {} and {}", dtype_name(c.dtype(1)), dtype_name(c.dtype(2)));
  return c.set(0, c.dtype(1), std::move(shape));
}

Expr compare(ir::Op op, const Expr& a, const Expr& b) { return ir::make(op, {a, b}); }
void emit_equal(EmitContext& c) {
  emit_pair(c, "equal", [](const Expr& a, const Expr& b) { return compare(ir::Op::kEq, a, b); });
}
void emit_less(EmitContext& c) {
  emit_pair(c, "less", [](const Expr& a, const Expr& b) { return ir::less(a, b); });
}
void emit_less_equal(EmitContext& c) {
  emit_pair(c, "less_equal", [](const Expr& a, const Expr& b) { return ir::less_equal(a, b); });
}
void emit_greater(EmitContext& c) {
  emit_pair(c, "greater", [](const Expr& a, const Expr& b) { return ir::less(b, a); });
}
void emit_greater_equal(EmitContext& c) {
  emit_pair(c, "greater_equal", [](const Expr& a, const Expr& b) { return ir::less_equal(b, a); });
}
void emit_and(EmitContext& c) {
  emit_pair(c, "and", [](const Expr& a, const Expr& b) { return ir::logical_and(a, b); });
}
void emit_or(EmitContext& c) {
  emit_pair(c, "or", [](const Expr& a, const Expr& b) { return compare(ir::Op::kOr, a, b); });
}
void emit_xor(EmitContext& c) {
  emit_pair(c, "xor", [](const Expr& a, const Expr& b) { return compare(ir::Op::kNe, a, b); });
}
void emit_not(EmitContext& c) { emit_unary(c, "not", apply<ir::Op::kNot>); }

template <ir::Op op>
void emit_bits(EmitContext& c) {
  emit_pair(c, std::string(ir::op_info(op).name).c_str(), [](const Expr& a, const Expr& b) {
    return ir::make(op, {a, b});
  });
}
void emit_bit_not(EmitContext& c) {
  emit_unary(c, "bitnot", [](const Expr& x) {
    return ir::make(ir::Op::kBitXor, {x, ir::constant_int(-1, x->type)});
  });
}
void emit_bit_shift(EmitContext& c) {
  const bool left = c.node().attributes.text("direction", "") == "LEFT";
  emit_pair(c, left ? "shl" : "shr", [&](const Expr& a, const Expr& b) {
    return ir::make(left ? ir::Op::kShl : ir::Op::kShr, {a, b});
  });
}
Status infer_bit_shift(InferContext& c) {
  const std::string direction = c.attributes().text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return c.fail("direction '{}', expected LEFT or RIGHT", direction);
  return infer_integer_binary(c);
}

void emit_is_nan(EmitContext& c) {
  emit_unary(c, "is_nan", [](const Expr& x) { return compare(ir::Op::kNe, x, x); });
}
void emit_is_inf(EmitContext& c) {
  const bool low = c.node().attributes.integer("detect_negative", 1) != 0;
  const bool high = c.node().attributes.integer("detect_positive", 1) != 0;
  emit_unary(c, "is_inf", [&](const Expr& x) {
    const double infinity = std::numeric_limits<double>::infinity();
    Expr found = ir::constant_bool(false);
    if (low) found = compare(ir::Op::kEq, x, lit(x, -infinity));
    if (high) found = ir::make(ir::Op::kOr, {found, compare(ir::Op::kEq, x, lit(x, infinity))});
    return found;
  });
}

void emit_where(EmitContext& c) {
  c.pointwise("where", [&](const Point& point) {
    const Expr test = c.operand(0, "condition", point);
    const Expr a = c.operand(1, "data", point);
    return ir::select(test, a, c.operand(2, "other", point));
  });
}

Op logic(std::string_view name, int since, Status (*infer)(InferContext&),
         void (*emit)(EmitContext&), int operands, std::string_view attributes = {}) {
  return {.name = name,
          .since = since,
          .min_inputs = operands,
          .max_inputs = operands,
          .kind = Kind::kElementwise,
          .layout = Layout::kFollow,
          .attributes = attributes,
          .infer = infer,
          .fold = evaluate_node,
          .emit = emit};
}

}  // namespace

std::span<const Op> logic_ops() {
  static const std::vector<Op> ops = {
      logic("Equal", 7, infer_comparison, emit_equal, 2),
      logic("Less", 7, infer_comparison, emit_less, 2),
      logic("LessOrEqual", 12, infer_comparison, emit_less_equal, 2),
      logic("Greater", 7, infer_comparison, emit_greater, 2),
      logic("GreaterOrEqual", 12, infer_comparison, emit_greater_equal, 2),
      logic("And", 7, infer_logic, emit_and, 2),
      logic("Or", 7, infer_logic, emit_or, 2),
      logic("Xor", 7, infer_logic, emit_xor, 2),
      logic("Not", 1, infer_not, emit_not, 1),
      logic("BitwiseAnd", 18, infer_integer_binary, emit_bits<ir::Op::kBitAnd>, 2),
      logic("BitwiseOr", 18, infer_integer_binary, emit_bits<ir::Op::kBitOr>, 2),
      logic("BitwiseXor", 18, infer_integer_binary, emit_bits<ir::Op::kBitXor>, 2),
      logic("BitwiseNot", 18, infer_integer_binary, emit_bit_not, 1),
      logic("BitShift", 11, infer_bit_shift, emit_bit_shift, 2, "direction:s"),
      logic("IsNaN", 9, infer_test, emit_is_nan, 1),
      logic("IsInf", 10, infer_test, emit_is_inf, 1, "detect_negative:i detect_positive:i"),
      logic("Where", 9, infer_where, emit_where, 3),
  };
  return ops;
}

}  // namespace hone::graph
