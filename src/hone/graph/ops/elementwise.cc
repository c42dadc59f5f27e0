// Operators that compute each point of the result from the same point of the operands.
#include <cmath>
#include <limits>

#include "hone/graph/emit.h"
#include "hone/graph/evaluate.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

using ir::Expr;

Status infer_float_unary(InferContext& c) {
  if (!is_float(c.dtype(0)))
    return c.fail("operand of type {}, expected a float", dtype_name(c.dtype(0)));
  return c.set(0, c.dtype(0), c.shape(0));
}

Status infer_binary(InferContext& c) {
  Shape shape = c.shape(0);
  for (size_t i = 1; i < c.num_inputs(); ++i) {
    if (!c.has(i)) return c.fail("operand {} is missing", i);
    if (c.dtype(i) != c.dtype(0)) {
      return c.fail("operands of types {} and {}", dtype_name(c.dtype(0)), dtype_name(c.dtype(i)));
    }
    const auto joined = broadcast(shape, c.shape(i));
    if (!joined)
      return c.fail("operands of shapes {} and {}", to_string(shape), to_string(c.shape(i)));
    shape = *joined;
  }
  return c.set(0, c.dtype(0), std::move(shape));
}

template <typename F>
void emit_unary(EmitContext& c, const char* tag, const F& f) {
  c.pointwise(tag, [&](const Point& point) { return f(c.operand(0, "data", point)); });
}

Expr lit(const Expr& like, double value) { return literal(like->type, value); }
Expr clamp(const Expr& x, double low, double high) {
  return ir::min(ir::max(x, lit(x, low)), lit(x, high));
}

template <ir::Op op>
void emit_function(EmitContext& c) {
  emit_unary(c, std::string(ir::op_info(op).name).c_str(),
             [](const Expr& x) { return ir::make(op, {x}); });
}

void emit_relu(EmitContext& c) {
  emit_unary(c, "relu", [](const Expr& x) { return ir::max(x, lit(x, 0)); });
}

void emit_leaky_relu(EmitContext& c) {
  const double alpha = c.node().attributes.number("alpha", 0.01f);
  emit_unary(c, "leaky_relu", [&](const Expr& x) {
    return ir::select(ir::less(x, lit(x, 0)), x * lit(x, alpha), x);
  });
}

// hard_sigmoid(x) = clamp(alpha * x + beta, 0, 1)
Expr hard_sigmoid(const Expr& x, double alpha, double beta) {
  return clamp(x * lit(x, alpha) + lit(x, beta), 0, 1);
}

void emit_hard_sigmoid(EmitContext& c) {
  const double alpha = c.node().attributes.number("alpha", 0.2f);
  const double beta = c.node().attributes.number("beta", 0.5f);
  emit_unary(c, "hard_sigmoid", [&](const Expr& x) { return hard_sigmoid(x, alpha, beta); });
}

void emit_hard_swish(EmitContext& c) {
  emit_unary(c, "hard_swish", [](const Expr& x) { return x * hard_sigmoid(x, 1.0 / 6, 0.5); });
}

// A bound of Clip, from the attribute (opset 6) or the operand; nullopt if it is not a constant.
std::optional<double> clip_bound(const Graph& graph, const Node& node, size_t operand,
                                 const char* attribute, double otherwise) {
  if (!node.has_input(operand))
    return node.attributes.number(attribute, static_cast<float>(otherwise));
  const auto& constant = graph.value(node.inputs[operand]).constant;
  if (!constant) return std::nullopt;
  return constant->at(0);
}

void emit_clip(EmitContext& c) {
  const auto bound = [&](size_t i, const char* name, double otherwise, const Point& point) {
    const auto known = clip_bound(c.graph(), c.node(), i, name, otherwise);
    return known ? literal(c.result().dtype, *known) : c.operand(i, name, point);
  };
  const bool limited_below = c.node().has_input(1) || c.node().attributes.has("min");
  const bool limited_above = c.node().has_input(2) || c.node().attributes.has("max");
  c.pointwise("clip", [&](const Point& point) {
    Expr x = c.operand(0, "data", point);
    if (limited_below) x = ir::max(x, bound(1, "min", 0, point));
    if (limited_above) x = ir::min(x, bound(2, "max", 0, point));
    return x;
  });
}

Status infer_clip(InferContext& c) {
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
  const double none = -std::numeric_limits<float>::infinity();
  const auto low = clip_bound(graph, node, 1, "min", none);
  return known[static_cast<size_t>(node.inputs[0])] || (low && *low >= 0);
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

// A constant operand that is smaller than the result is a bias or a scale per channel.
bool is_coefficient(const EmitContext& c, size_t i) {
  return c.input(i).constant.has_value() && c.input(i).shape != c.result().shape &&
         c.input(i).constant->size() > 1;
}

template <typename F>
void emit_binary(EmitContext& c, const char* tag, const char* coefficient_tag, const F& f) {
  const bool special = coefficient_tag != nullptr && (is_coefficient(c, 0) || is_coefficient(c, 1));
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

void emit_add(EmitContext& c) {
  emit_binary(c, "add", "bias", [](const Expr& a, const Expr& b) { return a + b; });
}
void emit_sub(EmitContext& c) {
  emit_binary(c, "sub", nullptr, [](const Expr& a, const Expr& b) { return a - b; });
}
void emit_mul(EmitContext& c) {
  emit_binary(c, "mul", "scale", [](const Expr& a, const Expr& b) { return a * b; });
}
void emit_div(EmitContext& c) {
  emit_binary(c, "div", nullptr, [](const Expr& a, const Expr& b) { return a / b; });
}
void emit_min(EmitContext& c) {
  emit_binary(c, "min", nullptr, [](const Expr& a, const Expr& b) { return ir::min(a, b); });
}
void emit_max(EmitContext& c) {
  emit_binary(c, "max", nullptr, [](const Expr& a, const Expr& b) { return ir::max(a, b); });
}
void emit_pow(EmitContext& c) {
  emit_binary(c, "pow", nullptr, [](const Expr& a, const Expr& b) {
    if (b->op == ir::Op::kFloat && b->float_value == 2) return a * a;
    if (b->op == ir::Op::kFloat && b->float_value == 0.5) return ir::make(ir::Op::kSqrt, {a});
    return ir::make(ir::Op::kPow, {a, b});
  });
}

Status infer_cast(InferContext& c) {
  const auto to = dtype_from_onnx(static_cast<int>(c.attributes().integer("to", 0)));
  if (!to) return c.unsupported("a cast to element type {}", c.attributes().integer("to", 0));
  return c.set(0, *to, c.shape(0));
}

Result<std::vector<Tensor>> fold_cast(const Graph& graph, const Node& node) {
  const Tensor& from = *graph.value(node.inputs[0]).constant;
  Tensor to(graph.value(node.outputs[0]).dtype, from.shape());
  for (int64_t i = 0; i < from.size(); ++i) {
    // 64-bit integers do not pass through double.
    if (from.dtype() == DType::kI64 && to.dtype() == DType::kI64) {
      to.as<int64_t>()[static_cast<size_t>(i)] = from.as<int64_t>()[static_cast<size_t>(i)];
      continue;
    }
    const double value = from.at(i);
    to.set(i, to.dtype() == DType::kBool ? value != 0
              : is_float(to.dtype())     ? value
                                         : std::trunc(value));
  }
  return std::vector<Tensor>{std::move(to)};
}

void emit_cast(EmitContext& c) {
  emit_unary(c, "cast", [&](const Expr& x) { return ir::cast(c.result().dtype, x); });
}

constexpr int kMany = 64;  // operands of variadic Min, Max

Op unary(std::string_view name, void (*emit)(EmitContext&), bool non_negative = false,
         std::string_view attributes = {}) {
  return {.name = name,
          .kind = Kind::kElementwise,
          .layout = Layout::kFollow,
          .attributes = attributes,
          .infer = infer_float_unary,
          .fold = evaluate_node,
          .emit = emit,
          .non_negative = non_negative ? always : nullptr};
}

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
        unary("Relu", emit_relu, true),
        unary("LeakyRelu", emit_leaky_relu, false, "alpha:f"),
        unary("Sigmoid", emit_function<ir::Op::kSigmoid>, true),
        unary("Tanh", emit_function<ir::Op::kTanh>),
        unary("HardSigmoid", emit_hard_sigmoid, true, "alpha:f beta:f"),
        unary("HardSwish", emit_hard_swish),
        unary("Exp", emit_function<ir::Op::kExp>, true),
        unary("Log", emit_function<ir::Op::kLog>),
        unary("Sqrt", emit_function<ir::Op::kSqrt>, true),
        unary("Erf", emit_function<ir::Op::kErf>),
        unary("Abs", emit_function<ir::Op::kAbs>, true),
        unary("Neg", emit_function<ir::Op::kNeg>),
        unary("Floor", emit_function<ir::Op::kFloor>),
        unary("Ceil", emit_function<ir::Op::kCeil>),
        binary("Add", emit_add, true),
        binary("Sub", emit_sub, false),
        binary("Mul", emit_mul, true),
        binary("Div", emit_div, true),
        binary("Pow", emit_pow, false),
        binary("Min", emit_min, true, 1, kMany),
        binary("Max", emit_max, true, 1, kMany),
        clip(6, 10, 1, "min:f max:f"),
        clip(11, kMaxOpset, 3, {}),
    };
    list.push_back({.name = "Cast",
                    .kind = Kind::kElementwise,
                    .layout = Layout::kFollow,
                    .attributes = "to:i saturate:i round_mode:s",
                    .infer = infer_cast,
                    .fold = fold_cast,
                    .emit = emit_cast,
                    .non_negative = like_operand});
    for (Op& op : list) {
      if (op.name == "HardSwish") op.since = 14;
    }
    return list;
  }();
  return ops;
}

}  // namespace hone::graph
