// ir/gelu.h - recognises GELU as a product, x / 2 (1 + f(x)), of which nothing is left below 0 if
// its parts are rounded. The interpreter and the CPU's code compute it as a whole.
#pragma once

#include <numbers>
#include <optional>

#include "hone/ir/expr.h"

namespace hone::ir {

struct Gelu {
  Expr x;
  bool by_tanh;  // f is tanh(sqrt(2 / pi) (x + 0.044715 x^3)), not erf(x / sqrt 2)
};
// The numbers of the other form, whose constants in an expression are rounded to its type.
inline constexpr double kGeluScale = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
inline constexpr double kGeluCube = 0.044715;

[[nodiscard]] std::optional<Gelu> find_gelu(const ExprNode& product);
// Returns the value, which is as exact where it is small.
[[nodiscard]] double gelu(double x, bool by_tanh);

// Returns f of 1 + f, an erf or a tanh; null for anything else.
[[nodiscard]] Expr step_above_one(const Expr& sum);
// An expression as a product with a positive constant, if it is one.
struct Scaled {
  Expr x;
  double by = 1;
};
[[nodiscard]] Scaled scaled_factor(const Expr& e);

}  // namespace hone::ir
