// ir/linear.h - integer expressions as linear forms: constant + sum of coefficient * atom.
//
// An atom is any i64 expression that is not itself a sum or a product with a constant. The atoms of
// a Linear differ (by equal()), no coefficient is 0, and terms are in canonical order. Index
// arithmetic is assumed not to overflow; a coefficient that would overflow is left inside an atom.
#pragma once

#include <optional>
#include <utility>

#include "hone/ir/expr.h"

namespace hone::ir {

struct Linear {
  int64_t constant = 0;
  std::vector<std::pair<Expr, int64_t>> terms;
  [[nodiscard]] bool is_constant() const { return terms.empty(); }
  // Returns the coefficient of an atom, which is 0 if the form does not have it.
  [[nodiscard]] int64_t coefficient(const Expr& atom) const;
  [[nodiscard]] int64_t coefficient(const VarPtr& var) const;
};

// Compares two expressions in a total order that is the same in every run, as variables and buffers
// are ordered by their names. It returns a negative number if a comes first and 0 if no name tells
// them apart.
[[nodiscard]] int compare(const Expr& a, const Expr& b);

[[nodiscard]] Linear linearize(const Expr& e);
[[nodiscard]] Linear atom(const Expr& e);  // form of one term (or a constant)
// Makes an expression with positive terms first, then negative ones, then the constant: a*4 + b -
// c*2 - 1.
[[nodiscard]] Expr to_expr(const Linear& form);

// Returns a + factor * b, or nothing on overflow.
[[nodiscard]] std::optional<Linear> add(const Linear& a, const Linear& b, int64_t factor = 1);
[[nodiscard]] std::optional<Linear> scale(const Linear& a, int64_t factor);
// Returns the form without the term of that atom.
[[nodiscard]] Linear without(const Linear& a, const Expr& atom);
// Returns the greatest common divisor of the coefficients; 0 if there are no terms.
[[nodiscard]] int64_t coefficient_gcd(const Linear& a);
[[nodiscard]] bool equal(const Linear& a, const Linear& b);
// Returns whether a variable occurs in e.
[[nodiscard]] bool uses(const Expr& e, const Var* var);
// Returns whether some atom contains the variable, by itself or inside a quotient.
[[nodiscard]] bool depends(const Linear& form, const VarPtr& var);
[[nodiscard]] bool has_load(const Expr& e);

}  // namespace hone::ir
