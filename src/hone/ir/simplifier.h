// ir/simplifier.h - the simplifier of expressions. Integer forms are in simplify_forms.cc,
// conditions and everything else in simplify.cc. Callers use it through ir/simplify.h.
#pragma once

#include "hone/ir/simplify.h"

namespace hone::ir {

using Form = std::optional<Linear>;  // no value on overflow

class Simplifier {
 public:
  Simplifier(Ranges& ranges, const SimplifyOptions& options) : ranges_(ranges), options_(options) {}
  [[nodiscard]] Expr simplify(const Expr& e);
  // Returns an index of a buffer, simplified.
  [[nodiscard]] Expr index(const BufferPtr& buffer, const Expr& e);
  [[nodiscard]] Ranges& ranges() { return ranges_; }

 private:
  void fire(Rule rule) {
    if (options_.fired) ++(*options_.fired)[static_cast<size_t>(rule)];
  }
  Linear form(const Expr& e);
  Form divide(const Linear& a, int64_t d);
  Form modulo(Linear a, int64_t d);
  Form min_max(Op op, const Linear& a, const Linear& b);
  Linear join_div_mod(Linear a);
  // Returns the ways to write x // d as an atom and a constant: that of divide(), and those that
  // divide once where x has a quotient, (y // m + r) // d as (y + m*r) // (m*d).
  std::vector<Linear> quotients(const Linear& x, int64_t d);
  bool in_block(const Linear& a, int64_t d, int64_t& block);  // a is in [block*d, block*d + d)
  Expr compare_ints(Op op, const Linear& a, const Linear& b);
  static Expr nonnegative(Linear d);
  static Expr against_zero(Op op, const Linear& d);
  Expr negate(const Expr& e);
  Expr connect(const Expr& e);
  Expr choose(const Expr& e);
  Expr value(const Expr& e);

  Ranges& ranges_;
  const SimplifyOptions& options_;
};

}  // namespace hone::ir
