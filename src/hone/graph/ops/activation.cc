// Functions of one operand: activations of neural networks.
#include <cmath>
#include <numbers>

#include "hone/graph/ops/pointwise.h"

namespace hone::graph {
namespace {

using ir::Expr;

Expr exp(const Expr& x) { return apply<ir::Op::kExp>(x); }
Expr sigmoid(const Expr& x) { return apply<ir::Op::kSigmoid>(x); }
Expr tanh(const Expr& x) { return apply<ir::Op::kTanh>(x); }
Expr positive(const Expr& x) { return ir::less(lit(x, 0), x); }
// e^x - 1 for x <= 0 with the relative accuracy of tanh: the difference itself has none near 0.
// With t = tanh(x / 2) it is 2 t / (1 - t), where nothing cancels.
Expr expm1_below(const Expr& x) {
  const Expr t = tanh(x * lit(x, 0.5));
  return (t + t) / (lit(x, 1) - t);
}
// log(1 + e^x) without overflow.
Expr softplus(const Expr& x) {
  const Expr tail = exp(apply<ir::Op::kNeg>(apply<ir::Op::kAbs>(x)));
  return at_least(0, x) + log1p(tail);
}
// hard_sigmoid(x) = clamp(alpha * x + beta, 0, 1)
Expr hard_sigmoid(const Expr& x, double alpha, double beta) {
  return clamp(x * lit(x, alpha) + lit(x, beta), 0, 1);
}

double attribute(const EmitContext& c, const char* name, double otherwise) {
  return c.node().attributes.number(name, static_cast<float>(otherwise));
}

void emit_gelu(EmitContext& c) {
  const bool by_tanh = c.node().attributes.text("approximate", "none") == "tanh";
  emit_unary(c, "gelu", [&](const Expr& x) {
    const Expr inner =
        by_tanh ? tanh((x + x * x * x * lit(x, 0.044715)) * lit(x, std::sqrt(2 / std::numbers::pi)))
                : apply<ir::Op::kErf>(x * lit(x, std::sqrt(0.5)));
    return x * lit(x, 0.5) * (inner + lit(x, 1));
  });
}

void emit_celu(EmitContext& c) {
  const double alpha = attribute(c, "alpha", 1);
  emit_unary(c, "celu", [&](const Expr& x) {
    const Expr below = expm1_below(at_most(0, x) * lit(x, 1 / alpha)) * lit(x, alpha);
    return ir::select(positive(x), x, below);
  });
}

void emit_elu(EmitContext& c) {
  const double alpha = attribute(c, "alpha", 1);
  emit_unary(c, "elu", [&](const Expr& x) {
    return ir::select(positive(x), x, expm1_below(at_most(0, x)) * lit(x, alpha));
  });
}

void emit_selu(EmitContext& c) {
  const double alpha = attribute(c, "alpha", 1.67326319217681884765625);
  const double gamma = attribute(c, "gamma", 1.05070102214813232421875);
  emit_unary(c, "selu", [&](const Expr& x) {
    return ir::select(positive(x), x * lit(x, gamma),
                      expm1_below(at_most(0, x)) * lit(x, alpha * gamma));
  });
}

void emit_shrink(EmitContext& c) {
  const double lambda = attribute(c, "lambd", 0.5), bias = attribute(c, "bias", 0);
  emit_unary(c, "shrink", [&](const Expr& x) {
    const Expr real = is_float(x->type) ? x : ir::cast(DType::kF64, x);
    const Expr above =
        ir::select(ir::less(lit(real, lambda), real), real - lit(real, bias), lit(real, 0));
    const Expr all = ir::select(ir::less(real, lit(real, -lambda)), real + lit(real, bias), above);
    return ir::cast(x->type, all);
  });
}

// The slope is broadcast to the data, never the other way.
Status infer_prelu(InferContext& c) {
  if (c.dtype(0) != c.dtype(1) || c.dtype(0) == DType::kBool)
    return c.fail("operands of types {} and {}", dtype_name(c.dtype(0)), dtype_name(c.dtype(1)));
  if (broadcast(c.shape(0), c.shape(1)) != c.shape(0))
    return c.fail("a slope of shape {} for data of shape {}", to_string(c.shape(1)),
                  to_string(c.shape(0)));
  return c.set(0, c.dtype(0), c.shape(0));
}

void emit_prelu(EmitContext& c) {
  c.pointwise("prelu", [&](const Point& point) {
    const Expr x = c.operand(0, "data", point);
    return ir::select(ir::less(x, lit(x, 0)), x * c.operand(1, "slope", point), x);
  });
}

void emit_hard_sigmoid(EmitContext& c) {
  const double alpha = attribute(c, "alpha", 0.2), beta = attribute(c, "beta", 0.5);
  emit_unary(c, "hard_sigmoid", [&](const Expr& x) { return hard_sigmoid(x, alpha, beta); });
}

void emit_leaky_relu(EmitContext& c) {
  const double alpha = attribute(c, "alpha", 0.01);
  emit_unary(c, "leaky_relu", [&](const Expr& x) {
    return ir::select(ir::less(x, lit(x, 0)), x * lit(x, alpha), x);
  });
}

void emit_thresholded_relu(EmitContext& c) {
  const double alpha = attribute(c, "alpha", 1);
  emit_unary(c, "thresholded_relu",
             [&](const Expr& x) { return ir::select(ir::less(lit(x, alpha), x), x, lit(x, 0)); });
}

void emit_swish(EmitContext& c) {
  const double alpha = attribute(c, "alpha", 1);
  emit_unary(c, "swish", [&](const Expr& x) { return x * sigmoid(x * lit(x, alpha)); });
}

void emit_relu(EmitContext& c) {
  emit_unary(c, "relu", [](const Expr& x) { return at_least(0, x); });
}
void emit_sigmoid(EmitContext& c) { emit_unary(c, "sigmoid", sigmoid); }
void emit_tanh(EmitContext& c) { emit_unary(c, "tanh", tanh); }
void emit_hard_swish(EmitContext& c) {
  emit_unary(c, "hard_swish", [](const Expr& x) { return x * hard_sigmoid(x, 1.0 / 6, 0.5); });
}
void emit_softplus(EmitContext& c) { emit_unary(c, "softplus", softplus); }
void emit_softsign(EmitContext& c) {
  emit_unary(c, "softsign", [](const Expr& x) { return x / (apply<ir::Op::kAbs>(x) + lit(x, 1)); });
}
// tanh(log(1 + e^x)) = n / (n + 2) with n = e^x (e^x + 2); beyond 20 it is 1.
void emit_mish(EmitContext& c) {
  emit_unary(c, "mish", [](const Expr& x) {
    const Expr e = exp(at_most(20, x));
    const Expr n = e * (e + lit(x, 2));
    return x * (n / (n + lit(x, 2)));
  });
}

}  // namespace

std::span<const Op> activation_ops() {
  static const std::vector<Op> ops = [] {
    std::vector<Op> list = {
        unary_op("Relu", emit_relu, 1, {}, true),
        unary_op("LeakyRelu", emit_leaky_relu, 1, "alpha:f"),
        unary_op("ThresholdedRelu", emit_thresholded_relu, 10, "alpha:f"),
        unary_op("Sigmoid", emit_sigmoid, 1, {}, true),
        unary_op("Tanh", emit_tanh),
        unary_op("HardSigmoid", emit_hard_sigmoid, 1, "alpha:f beta:f", true),
        unary_op("HardSwish", emit_hard_swish, 14),
        unary_op("Swish", emit_swish, 24, "alpha:f"),
        unary_op("Mish", emit_mish, 18),
        unary_op("Softplus", emit_softplus, 1, {}, true),
        unary_op("Softsign", emit_softsign),
        unary_op("Elu", emit_elu, 1, "alpha:f"),
        unary_op("Celu", emit_celu, 12, "alpha:f"),
        unary_op("Selu", emit_selu, 1, "alpha:f gamma:f"),
        unary_op("Gelu", emit_gelu, 20, "approximate:s"),
        unary_op("Shrink", emit_shrink, 9, "bias:f lambd:f"),
        {.name = "PRelu",
         .min_inputs = 2,
         .max_inputs = 2,
         .kind = Kind::kElementwise,
         .layout = Layout::kFollow,
         .infer = infer_prelu,
         .fold = evaluate_node,
         .emit = emit_prelu},
    };
    for (Op& op : list) {
      if (op.name == "Relu" || op.name == "Shrink") op.infer = infer_number_unary;
    }
    return list;
  }();
  return ops;
}

}  // namespace hone::graph
