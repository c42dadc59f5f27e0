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
// `value` is that of |x|, and 0 of 0, whose sign is kept, too.
Expr with_sign_of(const Expr& x, const Expr& value) {
  const Expr of_others = ir::select(ir::less(x, lit(x, 0)), negated(value), value);
  return ir::select(ir::make(ir::Op::kEq, {x, lit(x, 0)}), x, of_others);
}
Expr is_above(const Expr& x, double limit) { return ir::less(lit(x, limit), x); }
constexpr double kLarge = 1e8;  // 1 / x^2 adds nothing to 1, and x^2 does not overflow before

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
// By e^(|x|/2), which overflows only where the result does; near 0, where the halves cancel, by the
// tangent of the half: sinh x = 2 t / (1 - t^2).
void emit_sinh(EmitContext& c) {
  emit_unary(c, "sinh", [](const Expr& x) {
    const Expr t = apply<ir::Op::kTanh>(x * lit(x, 0.5));
    const Expr root = exp(abs(x) * lit(x, 0.5));
    const Expr far = root * lit(x, 0.5) * root - lit(x, 0.5) / root / root;
    return ir::select(ir::less(abs(x), lit(x, 1)), (t + t) / (lit(x, 1) - t * t),
                      with_sign_of(x, far));
  });
}
void emit_cosh(EmitContext& c) {
  emit_unary(c, "cosh", [](const Expr& x) {
    const Expr root = exp(abs(x) * lit(x, 0.5));
    return root * lit(x, 0.5) * root + lit(x, 0.5) / root / root;
  });
}
void emit_asinh(EmitContext& c) {
  emit_unary(c, "asinh", [](const Expr& x) {
    const Expr t = abs(x);
    const Expr square = t * t;
    const Expr near = log1p(t + square / (sqrt(square + lit(x, 1)) + lit(x, 1)));
    return with_sign_of(x,
                        ir::select(is_above(t, kLarge), log(t) + lit(x, std::numbers::ln2), near));
  });
}
void emit_acosh(EmitContext& c) {
  emit_unary(c, "acosh", [](const Expr& x) {
    const Expr t = x - lit(x, 1);
    const Expr near = log1p(t + sqrt(t * (t + lit(x, 2))));
    const Expr value = ir::select(is_above(x, kLarge), log(x) + lit(x, std::numbers::ln2), near);
    return ir::select(ir::less(x, lit(x, 1)), lit(x, std::numeric_limits<double>::quiet_NaN()),
                      value);
  });
}
void emit_atanh(EmitContext& c) {
  emit_unary(c, "atanh", [](const Expr& x) {
    const Expr t = abs(x);
    return with_sign_of(x, log1p((t + t) / (lit(x, 1) - t)) * lit(x, 0.5));
  });
}
void emit_reciprocal(EmitContext& c) {
  emit_unary(c, "reciprocal", [](const Expr& x) { return lit(x, 1) / x; });
}
void emit_sign(EmitContext& c) {
  emit_unary(c, "sign", [](const Expr& x) {
    const Expr none = ir::make(ir::Op::kNe, {x, x});
    const Expr others = is_float(x->type) ? ir::select(none, x, lit(x, 0)) : lit(x, 0);
    const Expr above = ir::select(is_above(x, 0), lit(x, 1), others);
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
