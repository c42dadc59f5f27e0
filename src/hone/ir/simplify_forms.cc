#include <algorithm>
#include <numeric>

#include "hone/ir/scalar.h"
#include "hone/ir/simplifier.h"

namespace hone::ir {
namespace {

struct Split {
  Linear quotient, rest;  // a = d * quotient + rest, the constant of rest in [0, d)
};
Split split(const Linear& a, int64_t d) {
  Split s;
  for (const auto& term : a.terms) {
    if (term.second % d == 0) {
      s.quotient.terms.emplace_back(term.first, term.second / d);
    } else {
      s.rest.terms.push_back(term);
    }
  }
  s.quotient.constant = floor_div(a.constant, d);
  s.rest.constant = floor_mod(a.constant, d);
  return s;
}

// rest = g * high + low with low in [0, g), g > 1 and g | d: the largest such g.
struct Radix {
  int64_t g = 1;
  Linear high, low;
};
Radix find_radix(const Linear& rest, int64_t d, const Ranges& ranges) {
  Radix best;
  for (const auto& candidate : rest.terms) {
    if (candidate.second == INT64_MIN) continue;
    const int64_t g = std::gcd(candidate.second, d);
    if (g <= best.g) continue;
    const Split s = split(rest, g);
    const Interval low = ranges.of(s.rest);
    if (low.lo >= 0 && low.hi < g) best = {g, s.quotient, s.rest};
  }
  return best;
}

}  // namespace

Linear Simplifier::form(const Expr& e) {
  const auto combined = [&]() -> Form {
    switch (e->op) {
      case Op::kAdd: return add(form(e->args[0]), form(e->args[1]));
      case Op::kSub: return add(form(e->args[0]), form(e->args[1]), -1);
      case Op::kNeg: return scale(form(e->args[0]), -1);
      case Op::kMul: {
        const Linear a = form(e->args[0]), b = form(e->args[1]);
        if (b.is_constant()) return scale(a, b.constant);
        if (a.is_constant()) return scale(b, a.constant);
        return atom(make(Op::kMul, {to_expr(a), to_expr(b)}));
      }
      case Op::kFloorDiv:
      case Op::kFloorMod: {
        const Linear a = form(e->args[0]), b = form(e->args[1]);
        if (b.is_constant() && b.constant > 0)
          return e->op == Op::kFloorDiv ? divide(a, b.constant) : modulo(a, b.constant);
        return linearize(make(e->op, {to_expr(a), to_expr(b)}));
      }
      case Op::kMin:
      case Op::kMax: return min_max(e->op, form(e->args[0]), form(e->args[1]));
      case Op::kVar: {
        const Interval i = ranges_.of(e->var);
        if (!i.is_point()) return atom(e);
        fire(Rule::kPinned);
        return Linear{i.lo, {}};
      }
      case Op::kInt: return atom(e);
      default: return linearize(value(e));
    }
  }();
  if (!combined) return atom(e);  // overflow: leave it as it is
  return join_div_mod(*combined);
}

bool Simplifier::in_block(const Linear& a, int64_t d, int64_t& block) {
  const Interval i = ranges_.of(a);
  const Interval q = floor_div(i, d);
  block = q.lo;
  if (q.is_point()) return true;
  if (ranges_.facts().empty() || i.lo < 0) return false;
  block = 0;
  const Form rest = add({d - 1, {}}, a, -1);
  return rest && ranges_.proves_nonnegative(*rest);
}

Form Simplifier::divide(const Linear& a, int64_t d) {
  if (d == 1) return a;
  const Split s = split(a, d);
  int64_t block = 0;
  if (in_block(s.rest, d, block)) {
    fire(Rule::kDivWhole);
    return add(s.quotient, {block, {}});
  }
  if (!s.quotient.is_constant() || s.quotient.constant != 0) fire(Rule::kDivSplit);
  if (const Radix r = find_radix(s.rest, d, ranges_); r.g > 1) {
    fire(Rule::kDivReduce);
    const Form inner = divide(r.high, d / r.g);
    return inner ? add(s.quotient, *inner) : std::nullopt;
  }
  if (s.rest.terms.size() == 1 && s.rest.terms[0].second == 1) {
    const Expr& e = s.rest.terms[0].first;
    if (e->op == Op::kFloorDiv && is_const_int(e->args[1]) && e->args[1]->int_value > 0) {
      const int64_t m = e->args[1]->int_value;
      int64_t product = 0;
      const Form shift = scale({s.rest.constant, {}}, m);
      const Form x = shift ? add(linearize(e->args[0]), *shift) : std::nullopt;
      if (x && !__builtin_mul_overflow(m, d, &product)) {
        fire(Rule::kDivNested);
        const Form inner = divide(*x, product);
        return inner ? add(s.quotient, *inner) : std::nullopt;
      }
    }
  }
  return add(s.quotient, atom(floordiv(to_expr(s.rest), d)));
}

Form Simplifier::modulo(Linear a, int64_t d) {
  if (d == 1) return Linear{};
  for (size_t i = 0; i < a.terms.size(); ++i) {
    const auto [e, c] = a.terms[i];
    if (e->op != Op::kFloorMod || !is_const_int(e->args[1]) || e->args[1]->int_value <= 0) continue;
    int64_t period = 0;
    if (__builtin_mul_overflow(c, e->args[1]->int_value, &period) || period % d != 0) continue;
    const Form inner = add(without(a, e), linearize(e->args[0]), c);
    if (!inner) continue;
    fire(Rule::kModNested);
    return modulo(*inner, d);
  }
  const Split s = split(a, d);
  int64_t block = 0;
  if (in_block(s.rest, d, block)) {
    fire(Rule::kModWhole);
    const Form shift = scale({block, {}}, d);
    return shift ? add(s.rest, *shift, -1) : std::nullopt;
  }
  if (!s.quotient.is_constant() || s.quotient.constant != 0) fire(Rule::kModSplit);
  if (const Radix r = find_radix(s.rest, d, ranges_); r.g > 1) {
    fire(Rule::kModReduce);
    const Form inner = modulo(r.high, d / r.g);
    return inner ? add(r.low, *inner, r.g) : std::nullopt;
  }
  return atom(floormod(to_expr(s.rest), d));
}

std::vector<Linear> Simplifier::quotients(const Linear& x, int64_t d) {
  std::vector<Linear> found;
  const auto consider = [&](const Form& q) {
    if (q && q->terms.size() == 1 && q->terms[0].second == 1) found.push_back(*q);
  };
  consider(divide(x, d));
  for (const auto& [e, c] : x.terms) {
    if (c != 1 || e->op != Op::kFloorDiv || !is_const_int(e->args[1])) continue;
    const int64_t m = e->args[1]->int_value;
    int64_t product = 0;
    if (m <= 0 || __builtin_mul_overflow(m, d, &product)) continue;
    const Form rest = scale(without(x, e), m);
    if (const Form whole = rest ? add(linearize(e->args[0]), *rest) : std::nullopt; whole)
      consider(divide(*whole, product));
  }
  return found;
}

Linear Simplifier::join_div_mod(Linear a) {
  for (size_t i = 0; i < a.terms.size(); ++i) {
    const auto [m, c] = a.terms[i];
    if (m->op != Op::kFloorMod || !is_const_int(m->args[1])) continue;
    const int64_t d = m->args[1]->int_value;
    int64_t whole = 0;
    if (d <= 0 || __builtin_mul_overflow(c, d, &whole) || whole == 0) continue;
    const Linear x = linearize(m->args[0]);
    for (const Linear& q : quotients(x, d)) {
      const Expr& quotient = q.terms[0].first;
      const Form shift = scale({q.constant, {}}, whole);
      if (a.coefficient(quotient) != whole || !shift) continue;
      Form joined = add(without(without(a, m), quotient), x, c);
      if (joined) joined = add(*joined, *shift, -1);
      if (!joined) continue;
      fire(Rule::kDivMod);
      return join_div_mod(*joined);
    }
  }
  return a;
}

Form Simplifier::min_max(Op op, const Linear& a, const Linear& b) {
  const bool is_min = op == Op::kMin;
  for (const bool swapped : {false, true}) {
    const Linear& first = swapped ? b : a;
    const Linear& second = swapped ? a : b;
    const Form gap = is_min ? add(second, first, -1) : add(first, second, -1);
    if (gap && ranges_.proves_nonnegative(*gap)) {
      fire(Rule::kMinMaxProven);
      return first;
    }
  }
  // A constant bound of something bounded already.
  const Linear& x = b.is_constant() ? a : b;
  const Linear& bound = b.is_constant() ? b : a;
  if (bound.is_constant() && x.terms.size() == 1 && x.terms[0].second == 1) {
    const Expr& inner = x.terms[0].first;
    if (inner->op == op && is_const_int(inner->args[1])) {
      const Form other = add(linearize(inner->args[0]), {x.constant, {}});
      const Form inside = add({inner->args[1]->int_value, {}}, {x.constant, {}});
      if (other && inside) {
        fire(Rule::kMinMaxNested);
        const int64_t c = is_min ? std::min(inside->constant, bound.constant)
                                 : std::max(inside->constant, bound.constant);
        return min_max(op, *other, {c, {}});
      }
    }
  }
  const Expr ea = to_expr(a), eb = to_expr(b);
  const bool swap = a.is_constant() || (!b.is_constant() && compare(ea, eb) > 0);
  return atom(swap ? make(op, {eb, ea}) : make(op, {ea, eb}));
}

}  // namespace hone::ir
