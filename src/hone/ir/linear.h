// ir/linear.h - integer expressions as linear forms: constant + sum of coefficient * atom.
//
// An atom is any i64 expression that is not itself a sum or a product with a constant. Invariants
// of a Linear: atoms differ (by equal()), no coefficient is 0, terms stand in canonical order.
// Index arithmetic is taken not to overflow; a coefficient that would overflow is left inside an
// atom.
#pragma once

#include <optional>
#include <utility>

#include "hone/ir/expr.h"

namespace hone::ir {

struct Linear {
  int64_t constant = 0;
  std::vector<std::pair<Expr, int64_t>> terms;
  [[nodiscard]] bool is_constant() const { return terms.empty(); }
  // The coefficient of an atom, 0 if it is not there.
  [[nodiscard]] int64_t coefficient(const Expr& atom) const;
  [[nodiscard]] int64_t coefficient(const VarPtr& var) const;
};

// A total order of expressions up to the names of variables and buffers, the same in every run.
[[nodiscard]] int compare(const Expr& a, const Expr& b);

[[nodiscard]] Linear linearize(const Expr& e);
[[nodiscard]] Linear atom(const Expr& e);  // one term (or a constant)
// Positive terms first, then negative ones, then the constant: a*4 + b - c*2 - 1.
[[nodiscard]] Expr to_expr(const Linear& form);

// a + factor * b; nothing on overflow.
[[nodiscard]] std::optional<Linear> add(const Linear& a, const Linear& b, int64_t factor = 1);
[[nodiscard]] std::optional<Linear> scale(const Linear& a, int64_t factor);
// Without one term.
[[nodiscard]] Linear without(const Linear& a, const Expr& atom);
// The greatest common divisor of the coefficients; 0 without terms.
[[nodiscard]] int64_t coefficient_gcd(const Linear& a);
[[nodiscard]] bool equal(const Linear& a, const Linear& b);
// Whether a variable occurs in e.
[[nodiscard]] bool uses(const Expr& e, const Var* var);
// Whether some atom holds the variable, by itself or inside a quotient.
[[nodiscard]] bool depends(const Linear& form, const VarPtr& var);
[[nodiscard]] bool has_load(const Expr& e);

}  // namespace hone::ir
