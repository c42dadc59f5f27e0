// Functions of one operand: roots, exponentials, angles, rounding.
#include <numbers>

#include "hone/graph/ops/pointwise.h"

namespace hone::graph {
namespace {

using ir::Expr;

template <ir::Op op>
void emit_function(EmitContext& c) {
  emit_unary(c, std::string(ir::op_info(op).name).c_str(), apply<op>);
}

Expr abs(const Expr& x) { return apply<ir::Op::kAbs>(x); }
Expr sqrt(const Expr& x) { return apply<ir::Op::kSqrt>(x); }
Expr exp(const Expr& x) { return apply<ir::Op::kExp>(x); }
Expr log(const Expr& x) { return apply<ir::Op::kLog>(x); }
Expr atan(const Expr& x) { return apply<ir::Op::kAtan>(x); }
Expr negated(const Expr& x) { return apply<ir::Op::kNeg>(x); }
// `near` where |x| < limit: the far form cancels there.
Expr near_zero(const Expr& x, double limit, const Expr& near, const Expr& far) {
  return ir::select(ir::less(abs(x), lit(x, limit)), near, far);
}
// x + x * (c1 s + c2 s^2), s = x^2
Expr odd(const Expr& x, double c1, double c2) {
  const Expr s = x * x;
  return x + x * s * (s * lit(x, c2) + lit(x, c1));
}
Expr with_sign_of(const Expr& x, const Expr& value) {
  return ir::select(ir::less(x, lit(x, 0)), negated(value), value);
}

void emit_tan(EmitContext& c) {
  emit_unary(c, "tan",
             [](const Expr& x) { return apply<ir::Op::kSin>(x) / apply<ir::Op::kCos>(x); });
}
// asin x = 2 atan(x / (1 + sqrt(1 - x^2))), acos x = 2 atan(sqrt((1 - x) / (1 + x)))
void emit_asin(EmitContext& c) {
  emit_unary(c, "asin", [](const Expr& x) {
    return atan(x / (sqrt((lit(x, 1) - x) * (lit(x, 1) + x)) + lit(x, 1))) * lit(x, 2);
  });
}
void emit_acos(EmitContext& c) {
  emit_unary(c, "acos", [](const Expr& x) {
    return atan(sqrt((lit(x, 1) - x) / (lit(x, 1) + x))) * lit(x, 2);
  });
}
void emit_sinh(EmitContext& c) {
  emit_unary(c, "sinh", [](const Expr& x) {
    return near_zero(x, 0.25, odd(x, 1.0 / 6, 1.0 / 120), (exp(x) - exp(negated(x))) * lit(x, 0.5));
  });
}
void emit_cosh(EmitContext& c) {
  emit_unary(c, "cosh", [](const Expr& x) { return (exp(x) + exp(negated(x))) * lit(x, 0.5); });
}
void emit_asinh(EmitContext& c) {
  emit_unary(c, "asinh", [](const Expr& x) {
    const Expr t = abs(x);
    return near_zero(x, 0.1, odd(x, -1.0 / 6, 3.0 / 40),
                     with_sign_of(x, log(t + sqrt(t * t + lit(x, 1)))));
  });
}
void emit_acosh(EmitContext& c) {
  emit_unary(c, "acosh", [](const Expr& x) { return log(x + sqrt(x * x - lit(x, 1))); });
}
void emit_atanh(EmitContext& c) {
  emit_unary(c, "atanh", [](const Expr& x) {
    return near_zero(x, 0.1, odd(x, 1.0 / 3, 1.0 / 5),
                     log((lit(x, 1) + x) / (lit(x, 1) - x)) * lit(x, 0.5));
  });
}
void emit_reciprocal(EmitContext& c) {
  emit_unary(c, "reciprocal", [](const Expr& x) { return lit(x, 1) / x; });
}
void emit_sign(EmitContext& c) {
  emit_unary(c, "sign", [](const Expr& x) {
    const Expr above = ir::select(ir::less(lit(x, 0), x), lit(x, 1), x);  // 0 and NaN stay
    const bool has_sign = is_float(x->type) || x->type == DType::kI8 || x->type == DType::kI16 ||
                          x->type == DType::kI32 || x->type == DType::kI64;
    return has_sign ? ir::select(ir::less(x, lit(x, 0)), lit(x, -1), above) : above;
  });
}

}  // namespace

std::span<const Op> math_ops() {
  static const std::vector<Op> ops = [] {
    std::vector<Op> list = {
        unary_op("Exp", emit_function<ir::Op::kExp>, 1, {}, true),
        unary_op("Log", emit_function<ir::Op::kLog>),
        unary_op("Sqrt", emit_function<ir::Op::kSqrt>, 1, {}, true),
        unary_op("Erf", emit_function<ir::Op::kErf>, 9),
        unary_op("Abs", emit_function<ir::Op::kAbs>, 1, {}, true),
        unary_op("Neg", emit_function<ir::Op::kNeg>),
        unary_op("Floor", emit_function<ir::Op::kFloor>),
        unary_op("Ceil", emit_function<ir::Op::kCeil>),
        unary_op("Round", emit_function<ir::Op::kRound>, 11),
        unary_op("Sin", emit_function<ir::Op::kSin>, 7),
        unary_op("Cos", emit_function<ir::Op::kCos>, 7),
        unary_op("Tan", emit_tan, 7),
        unary_op("Asin", emit_asin, 7),
        unary_op("Acos", emit_acos, 7),
        unary_op("Atan", emit_function<ir::Op::kAtan>, 7),
        unary_op("Sinh", emit_sinh, 9),
        unary_op("Cosh", emit_cosh, 9),
        unary_op("Asinh", emit_asinh, 9),
        unary_op("Acosh", emit_acosh, 9),
        unary_op("Atanh", emit_atanh, 9),
        unary_op("Reciprocal", emit_reciprocal),
        unary_op("Sign", emit_sign, 9),
    };
    for (Op& op : list) {
      if (op.name == "Abs" || op.name == "Neg" || op.name == "Sign") op.infer = infer_number_unary;
    }
    return list;
  }();
  return ops;
}

}  // namespace hone::graph
