#include "hone/ir/gelu.h"

#include <cmath>

namespace hone::ir {
namespace {

bool is_near(double found, double wanted) { return std::fabs(found - wanted) <= 1e-7 * wanted; }

bool is_product(const Expr& e, const Expr& x) { return e->op == Op::kMul && equal(e->args[1], x); }

// Returns whether `sum` is x + x x x 0.044715.
bool is_cubic(const Expr& sum, const Expr& x) {
  if (sum->op != Op::kAdd || !equal(sum->args[0], x)) return false;
  const auto [cube, by] = scaled_factor(sum->args[1]);
  return is_near(by, kGeluCube) && is_product(cube, x) && is_product(cube->args[0], x) &&
         equal(cube->args[0]->args[0], x);
}

}  // namespace

Scaled scaled_factor(const Expr& e) {
  for (size_t i = 0; e->op == Op::kMul && i < 2; ++i) {
    const Expr& factor = e->args[i];
    if (factor->op == Op::kFloat && factor->float_value > 0)
      return {e->args[1 - i], factor->float_value};
  }
  return {e};
}

Expr step_above_one(const Expr& sum) {
  for (size_t i = 0; sum->op == Op::kAdd && i < 2; ++i) {
    const Expr &one = sum->args[i], &step = sum->args[1 - i];
    if (one->op == Op::kFloat && one->float_value == 1 &&
        (step->op == Op::kErf || step->op == Op::kTanh))
      return step;
  }
  return nullptr;
}

std::optional<Gelu> find_gelu(const ExprNode& product) {
  if (product.op != Op::kMul) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const Expr step = step_above_one(product.args[i]);
    const auto [x, half] = scaled_factor(product.args[1 - i]);
    if (!step || half != 0.5) continue;
    const auto [inner, scale] = scaled_factor(step->args[0]);
    if (step->op == Op::kErf && is_near(scale, std::numbers::sqrt2 / 2) && equal(inner, x))
      return Gelu{x, false};
    if (step->op == Op::kTanh && is_near(scale, kGeluScale / 2) && is_cubic(inner, x))
      return Gelu{x, true};
  }
  return std::nullopt;
}

double gelu(double x, bool by_tanh) {
  if (by_tanh) return x / (1 + std::exp(-kGeluScale * (x + kGeluCube * x * x * x)));
  return x / 2 * std::erfc(-x * (std::numbers::sqrt2 / 2));
}

}  // namespace hone::ir
