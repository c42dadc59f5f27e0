// Arithmetic of two and more operands, broadcast against each other.
#include <cmath>
#include <limits>

#include "hone/graph/ops/pointwise.h"

namespace hone::graph {
namespace {

using ir::Expr;

// A bound of Clip, from the attribute (opset 6) or the operand; nullopt if it is not a constant.
std::optional<double> clip_bound(const Graph& graph, const Node& node, size_t operand,
                                 const char* attribute, double otherwise) {
  if (!node.has_input(operand))
    return node.attributes.number(attribute, static_cast<float>(otherwise));
  const auto& constant = graph.value(node.inputs[operand]).constant;
  if (!constant) return std::nullopt;
  return constant->at(0);
}

// A NaN among the operands is the result. One operand is read three times: never the one that is
// such a choice itself, or the expression for n operands would have 3^n of them.
Expr extreme(ir::Op op, const Expr& a, const Expr& b) {
  for (const Expr& known : {a, b}) {
    if (known->op != ir::Op::kFloat) continue;
    if (std::isnan(known->float_value)) return known;
    return ir::make(op, {known, known == a ? b : a});
  }
  if (!is_float(a->type)) return ir::make(op, {a, b});
  if (a->op == ir::Op::kSelect)
    return ir::select(ir::make(ir::Op::kNe, {b, b}), b, ir::make(op, {b, a}));
  return ir::select(ir::make(ir::Op::kNe, {a, a}), a, ir::make(op, {a, b}));
}
Expr least(const Expr& a, const Expr& b) { return extreme(ir::Op::kMin, a, b); }
Expr greatest(const Expr& a, const Expr& b) { return extreme(ir::Op::kMax, a, b); }

void emit_clip(EmitContext& c) {
  const Attributes& attributes = c.node().attributes;
  const auto bound = [&](size_t i, const char* name, const Point& point) -> Expr {
    if (c.node().has_input(i)) return c.operand(i, name, point);
    if (!attributes.has(name)) return nullptr;
    return literal(compute_type(c.result().dtype), attributes.number(name, 0));
  };
  c.pointwise("clip", [&](const Point& point) {
    Expr x = c.operand(0, "data", point);
    if (const Expr low = bound(1, "min", point)) x = greatest(low, x);
    if (const Expr high = bound(2, "max", point)) x = least(high, x);
    return x;
  });
}

Status infer_clip(InferContext& c) {
  if (c.dtype(0) == DType::kBool) return c.fail("operand of type bool, expected a number");
  for (size_t i = 1; i < 3; ++i) {
    if (!c.has(i)) continue;
    if (num_elements(c.shape(i)) != 1 || c.dtype(i) != c.dtype(0)) {
      return c.fail("a bound of type {} and shape {}, expected one {}", dtype_name(c.dtype(i)),
                    to_string(c.shape(i)), dtype_name(c.dtype(0)));
    }
  }
  return c.set(0, c.dtype(0), c.shape(0));
}

bool clip_non_negative(const Graph& graph, const Node& node, const std::vector<bool>& known) {
  constexpr double kNone = std::numeric_limits<float>::infinity();
  const auto low = clip_bound(graph, node, 1, "min", -kNone);
  const auto high = clip_bound(graph, node, 2, "max", kNone);
  if (!high || *high < 0) return false;  // the upper bound has the last word
  return known[static_cast<size_t>(node.inputs[0])] || (low && *low >= 0);
}

// A constant operand that is smaller than the result is a bias or a scale per channel.
bool is_coefficient(const EmitContext& c, size_t i) {
  return c.input(i).constant.has_value() && c.input(i).shape != c.result().shape &&
         c.input(i).constant->size() > 1;
}

template <typename F>
void emit_binary(EmitContext& c, const char* tag, const char* coefficient_tag, const F& f) {
  const bool special = coefficient_tag != nullptr && c.node().inputs.size() > 1 &&
                       (is_coefficient(c, 0) || is_coefficient(c, 1));
  c.pointwise(special ? coefficient_tag : tag, [&](const Point& point) {
    const auto role = [&](size_t i) {
      if (is_coefficient(c, i) && coefficient_tag != nullptr) return coefficient_tag;
      return i == 0 && !c.inside(0) && !c.inside(c.node().inputs.size() - 1) ? "data" : "other";
    };
    Expr value = c.operand(0, role(0), point);
    for (size_t i = 1; i < c.node().inputs.size(); ++i) {
      const Expr next = c.operand(i, role(i), point);
      value = f(value, next);
    }
    return value;
  });
}

Expr add(const Expr& a, const Expr& b) { return a + b; }
Expr subtract(const Expr& a, const Expr& b) { return a - b; }
Expr multiply(const Expr& a, const Expr& b) { return a * b; }
// Integers: a division by zero gives what dividing by one does, never a trap.
Expr divisor(const Expr& b) {
  if (is_float(b->type)) return b;
  if (b->op == ir::Op::kInt) return b->int_value != 0 ? b : lit(b, 1);
  return ir::select(ir::make(ir::Op::kEq, {b, lit(b, 0)}), lit(b, 1), b);
}
Expr divide(const Expr& a, const Expr& b) { return a / divisor(b); }

void emit_add(EmitContext& c) { emit_binary(c, "add", "bias", add); }
void emit_sub(EmitContext& c) { emit_binary(c, "sub", nullptr, subtract); }
void emit_mul(EmitContext& c) { emit_binary(c, "mul", "scale", multiply); }
void emit_div(EmitContext& c) { emit_binary(c, "div", nullptr, divide); }
void emit_min(EmitContext& c) { emit_binary(c, "min", nullptr, least); }
void emit_max(EmitContext& c) { emit_binary(c, "max", nullptr, greatest); }
void emit_mean(EmitContext& c) {
  emit_binary(c, "add", nullptr, add);
  const auto count = static_cast<double>(c.node().inputs.size());
  c.pointwise(StageTag("scale", ""), [&](const Point& point) {
    const Expr sum = c.last(point);
    return sum * lit(sum, 1 / count);
  });
}

// The type of the base; integers and mixed types are computed in double, small powers exactly.
Status infer_pow(InferContext& c) {
  HONE_ASSIGN_OR_RETURN(Shape shape, broadcast_operands(c));
  if (c.dtype(0) == DType::kBool || c.dtype(1) == DType::kBool)
    return c.fail("operands of types {} and {}", dtype_name(c.dtype(0)), dtype_name(c.dtype(1)));
  return c.set(0, c.dtype(0), std::move(shape));
}

void emit_pow(EmitContext& c) {
  c.pointwise("pow", [&](const Point& point) {
    const Expr a = c.operand(0, c.inside(0) ? "other" : "data", point);
    const Expr b = c.operand(1, "exponent", point);
    const bool whole = b->op == ir::Op::kInt || b->op == ir::Op::kFloat;
    const double known = b->op == ir::Op::kInt ? static_cast<double>(b->int_value) : b->float_value;
    if (whole && (known == 1 || known == 2 || known == 3)) {
      Expr power = a;
      for (int i = 1; i < static_cast<int>(known); ++i) power = power * a;
      return power;
    }
    if (whole && known == 0.5 && is_float(a->type)) {  // 0 of -0, infinity of minus infinity
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      return ir::select(ir::make(ir::Op::kEq, {a, lit(a, -kInfinity)}), lit(a, kInfinity),
                        apply<ir::Op::kSqrt>(a + lit(a, 0)));
    }
    if (is_float(a->type) && a->type == b->type) return ir::make(ir::Op::kPow, {a, b});
    const DType wide = DType::kF64;
    return ir::cast(a->type, ir::make(ir::Op::kPow, {ir::cast(wide, a), ir::cast(wide, b)}));
  });
}

// fmod 0: the sign of the divisor; 1: the sign of the dividend, as C.
void emit_mod(EmitContext& c) {
  const bool like_c = c.node().attributes.integer("fmod", 0) != 0;
  emit_binary(c, "mod", nullptr, [&](const Expr& a, const Expr& b) {
    const bool real = is_float(a->type);
    const Expr by = divisor(b);
    if (!real && !like_c) return ir::make(ir::Op::kFloorMod, {a, by});
    const Expr rest = ir::make(ir::Op::kRem, {a, by});
    if (like_c) return rest;
    const Expr zero = lit(rest, 0);
    const Expr turned =
        ir::make(ir::Op::kNe, {ir::less(rest, zero), ir::less(b, zero)});  // signs differ
    const Expr off = ir::make(ir::Op::kNe, {rest, zero});
    return ir::select(ir::logical_and(off, turned), rest + b, rest);
  });
}

Status infer_swiglu(InferContext& c) {
  if (c.shape(0) != c.shape(1))
    return c.fail("operands of shapes {} and {}", to_string(c.shape(0)), to_string(c.shape(1)));
  return infer_float_binary(c);
}

void emit_swiglu(EmitContext& c) {
  const double alpha = c.node().attributes.number("alpha", 1);
  c.pointwise("swiglu", [&](const Point& point) {
    const Expr gate = c.operand(0, "data", point);
    return gate * apply<ir::Op::kSigmoid>(gate * lit(gate, alpha)) * c.operand(1, "other", point);
  });
}

constexpr int kMany = 1 << 12;  // operands of variadic operators

Op binary(std::string_view name, void (*emit)(EmitContext&), bool keeps_sign, int min_inputs = 2,
          int max_inputs = 2) {
  return {.name = name,
          .min_inputs = min_inputs,
          .max_inputs = max_inputs,
          .kind = Kind::kElementwise,
          .layout = Layout::kFollow,
          .infer = infer_binary,
          .fold = evaluate_node,
          .emit = emit,
          .non_negative = keeps_sign ? like_operands : nullptr};
}

Op clip(int since, int until, int max_inputs, std::string_view attributes) {
  return {.name = "Clip",
          .since = since,
          .until = until,
          .max_inputs = max_inputs,
          .kind = Kind::kElementwise,
          .layout = Layout::kFollow,
          .attributes = attributes,
          .infer = infer_clip,
          .fold = evaluate_node,
          .emit = emit_clip,
          .non_negative = clip_non_negative};
}

}  // namespace

std::span<const Op> elementwise_ops() {
  static const std::vector<Op> ops = [] {
    std::vector<Op> list = {
        binary("Add", emit_add, true),
        binary("Sub", emit_sub, false),
        binary("Mul", emit_mul, true),
        binary("Div", emit_div, true),
        binary("Pow", emit_pow, false),
        binary("Mod", emit_mod, false),
        binary("Min", emit_min, true, 1, kMany),
        binary("Max", emit_max, true, 1, kMany),
        binary("Sum", emit_add, true, 1, kMany),
        binary("Mean", emit_mean, true, 1, kMany),
        binary("SwiGLU", emit_swiglu, false),
        clip(6, 10, 1, "min:f max:f"),
        clip(11, kMaxOpset, 3, {}),
    };
    for (Op& op : list) {
      if (op.name == "Pow") op.infer = infer_pow;
      if (op.name == "Mod") op.since = 10, op.attributes = "fmod:i";
      if (op.name == "Sum" || op.name == "Mean") op.infer = infer_float_binary;
      if (op.name == "SwiGLU") op.since = 28, op.attributes = "alpha:f", op.infer = infer_swiglu;
    }
    return list;
  }();
  return ops;
}

}  // namespace hone::graph
