#include "hone/ir/simplify.h"

#include <algorithm>

#include "hone/ir/scalar.h"
#include "hone/ir/simplifier.h"

namespace hone::ir {
namespace {

constexpr std::array<std::string_view, kNumRules> kRuleNames = {
    "pinned",         "div_whole",      "div_split",    "div_reduce",    "div_nested",
    "mod_whole",      "mod_split",      "mod_reduce",   "mod_nested",    "div_mod",
    "min_max_proven", "min_max_nested", "compare_true", "compare_false", "compare_canonical",
    "not_compare",    "de_morgan",      "and_implied",  "or_implied",    "select_proven",
    "select_same",    "select_bool",    "load_value",   "finite_zero"};

void flatten(Op op, const Expr& e, std::vector<Expr>& parts) {
  if (e->op != op) {
    parts.push_back(e);
    return;
  }
  flatten(op, e->args[0], parts);
  flatten(op, e->args[1], parts);
}

bool is_zero(const Expr& e) { return e->op == Op::kFloat && e->float_value == 0; }

}  // namespace

// ---- conditions ----

// d >= 0, as a comparison of sums without negative terms; null if one cannot be written.
Expr Simplifier::nonnegative(Linear d) {
  const int64_t g = coefficient_gcd(d);
  if (g > 1) {
    for (auto& term : d.terms) term.second /= g;
    d.constant = floor_div(d.constant, g);
  }
  Linear left, right;  // left <= right + constant
  for (const auto& [e, c] : d.terms) {
    if (c == INT64_MIN) return nullptr;
    (c < 0 ? left : right).terms.emplace_back(e, c < 0 ? -c : c);
  }
  if (right.terms.empty()) {
    right.constant = d.constant;
  } else if (left.terms.empty()) {
    if (d.constant == INT64_MIN) return nullptr;
    left.constant = -d.constant;
  } else {
    (d.constant >= 0 ? right : left).constant =
        d.constant >= 0 || d.constant == INT64_MIN ? d.constant : -d.constant;
  }
  // "< c + 1" reads better than "<= c" for an upper bound of a variable.
  if (right.terms.empty() && right.constant < INT64_MAX) {
    ++right.constant;
    return less(to_expr(left), to_expr(right));
  }
  if (left.constant == 1 && !left.terms.empty()) {
    left.constant = 0;
    return less(to_expr(left), to_expr(right));
  }
  return less_equal(to_expr(left), to_expr(right));
}

// d == 0 or d != 0, as a comparison of sums without negative terms; null if one cannot be written.
Expr Simplifier::against_zero(Op op, const Linear& d) {
  const int64_t g = coefficient_gcd(d);
  Linear left, right;
  for (const auto& [e, c] : d.terms) {
    if (c == INT64_MIN) return nullptr;
    (c > 0 ? left : right).terms.emplace_back(e, (c < 0 ? -c : c) / g);
  }
  right.constant = -(d.constant / g);
  if (left.terms.empty()) {
    std::swap(left.terms, right.terms);
    right.constant = -right.constant;
  }
  return make(op, {to_expr(left), to_expr(right)});
}

Expr Simplifier::compare_ints(Op op, const Linear& a, const Linear& b) {
  const Expr unchanged = make(op, {to_expr(a), to_expr(b)});
  Form d = add(b, a, -1);  // b - a
  if (d && op == Op::kLt) d = add(*d, {-1, {}});
  if (!d) return unchanged;
  const Form minus = scale(*d, -1);
  const Form below = minus ? add(*minus, {-1, {}}) : std::nullopt;  // -d - 1 >= 0: d is negative
  if (!below) return unchanged;
  const auto decided = [&](bool result) {
    fire(result ? Rule::kCompareTrue : Rule::kCompareFalse);
    return constant_bool(result);
  };
  Expr canonical;
  if (op == Op::kLt || op == Op::kLe) {  // d >= 0
    if (ranges_.proves_nonnegative(*d)) return decided(true);
    if (ranges_.proves_nonnegative(*below)) return decided(false);
    canonical = nonnegative(*d);
  } else {  // a == b or a != b
    const bool is_eq = op == Op::kEq;
    const Form above = add(*d, {-1, {}});
    if (d->is_constant()) return decided((d->constant == 0) == is_eq);
    if ((above && ranges_.proves_nonnegative(*above)) || ranges_.proves_nonnegative(*below) ||
        d->constant % coefficient_gcd(*d) != 0) {
      return decided(!is_eq);
    }
    canonical = against_zero(op, *d);
  }
  if (!canonical) return unchanged;
  fire(Rule::kCompareCanonical);
  return canonical;
}

Expr Simplifier::negate(const Expr& e) {
  const Op op = e->op;
  if (is_compare(op) && (e->args[0]->type == DType::kI64)) {
    fire(Rule::kNotCompare);
    if (op == Op::kLt) return simplify(less_equal(e->args[1], e->args[0]));
    if (op == Op::kLe) return simplify(less(e->args[1], e->args[0]));
    return simplify(make(op == Op::kEq ? Op::kNe : Op::kEq, e->args));
  }
  if (op == Op::kAnd || op == Op::kOr) {
    fire(Rule::kDeMorgan);
    return simplify(make(op == Op::kAnd ? Op::kOr : Op::kAnd,
                         {make(Op::kNot, {e->args[0]}), make(Op::kNot, {e->args[1]})}));
  }
  return make(Op::kNot, {e});
}

// a && b: each part is simplified knowing that the others hold; a || b: that they don't. Both sides
// are evaluated in any case, so an index of a load must stay in bounds without that knowledge.
Expr Simplifier::connect(const Expr& e) {
  const Op op = e->op;
  const bool is_and = op == Op::kAnd;
  const auto is_neutral = [&](const Expr& p) { return is_and ? is_true(p) : is_false(p); };
  const auto is_final = [&](const Expr& p) { return is_and ? is_false(p) : is_true(p); };
  std::vector<Expr> todo, parts;
  flatten(op, e, todo);
  const auto mark = ranges_.mark();
  const Ranges outside = ranges_;
  for (const Expr& part : todo) {
    std::vector<Expr> simple;
    flatten(op, has_load(part) ? ir::simplify(part, outside, options_) : simplify(part), simple);
    for (const Expr& p : simple) {
      if (is_final(p)) {
        ranges_.reset(mark);
        return p;
      }
      if (is_neutral(p) ||
          std::any_of(parts.begin(), parts.end(), [&](const Expr& q) { return equal(p, q); })) {
        fire(is_and ? Rule::kAndImplied : Rule::kOrImplied);
        continue;
      }
      parts.push_back(p);
      ranges_.assume(p, is_and);
    }
  }
  ranges_.reset(mark);
  // A part may follow from a later one.
  for (size_t i = 0; i + 1 < parts.size();) {
    for (size_t j = 0; j < parts.size(); ++j) {
      if (j != i) ranges_.assume(parts[j], is_and);
    }
    const Expr p = simplify(parts[i]);
    ranges_.reset(mark);
    if (is_final(p)) return p;
    if (is_neutral(p)) {
      fire(is_and ? Rule::kAndImplied : Rule::kOrImplied);
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  Expr result = constant_bool(is_and);
  for (const Expr& p : parts) result = make(op, {result, p});
  return result;
}

// ---- everything else ----

Expr Simplifier::choose(const Expr& e) {
  const Expr condition = simplify(e->args[0]);
  if (is_true(condition) || is_false(condition)) {
    fire(Rule::kSelectProven);
    return simplify(e->args[is_true(condition) ? 1 : 2]);
  }
  const auto mark = ranges_.mark();
  ranges_.assume(condition, true);
  const Expr if_true = simplify(e->args[1]);
  ranges_.reset(mark);
  ranges_.assume(condition, false);
  const Expr if_false = simplify(e->args[2]);
  ranges_.reset(mark);
  if (equal(if_true, if_false)) {
    fire(Rule::kSelectSame);
    return if_true;
  }
  if (is_true(if_true) && is_false(if_false)) {
    fire(Rule::kSelectBool);
    return condition;
  }
  return select(condition, if_true, if_false);
}

// A fragment is indexed by the variables of loops over threads, whatever their values are.
Expr Simplifier::index(const BufferPtr& buffer, const Expr& e) {
  return buffer->scope == Scope::kFragment && e->op == Op::kVar ? e : simplify(e);
}

Expr Simplifier::value(const Expr& e) {
  if (e->args.empty() && e->op != Op::kLoad) return e;
  if (e->op == Op::kSelect) return choose(e);
  std::vector<Expr> args;
  const bool indexes = e->op == Op::kLoad;
  for (const Expr& a : e->args) args.push_back(indexes ? index(e->buffer, a) : simplify(a));
  if (e->op == Op::kMul && options_.finite_math && (is_zero(args[0]) || is_zero(args[1]))) {
    fire(Rule::kFiniteZero);
    return constant_float(0, e->type);
  }
  const bool all_constant =
      std::all_of(args.begin(), args.end(), [](const Expr& a) { return is_const_int(a); });
  if (e->op == Op::kLoad && !e->buffer->values.empty() && all_constant) {
    int64_t flat = 0;
    bool inside = true;
    for (size_t i = 0; i < args.size(); ++i) {
      inside &= args[i]->int_value >= 0 && args[i]->int_value < e->buffer->shape[i];
      flat = flat * e->buffer->shape[i] + args[i]->int_value;
    }
    if (inside && flat < static_cast<int64_t>(e->buffer->values.size())) {
      fire(Rule::kLoadValue);
      const auto v = static_cast<double>(e->buffer->values[static_cast<size_t>(flat)]);
      return is_float(e->type) ? constant_float(v, e->type)
                               : constant_int(float_to_int(e->type, v), e->type);
    }
  }
  return with_args(*e, std::move(args));
}

Expr Simplifier::simplify(const Expr& e) {
  if (e->op == Op::kInt || e->op == Op::kFloat) return e;
  if (e->type == DType::kI64 && e->op != Op::kLoad) return to_expr(form(e));
  if (e->op == Op::kAnd || e->op == Op::kOr) return connect(e);
  if (e->op == Op::kNot) {
    const Expr inner = simplify(e->args[0]);
    if (is_const_int(inner)) return make(Op::kNot, {inner});
    return inner->op == Op::kNot ? inner->args[0] : negate(inner);
  }
  if (is_compare(e->op) && e->args[0]->type == DType::kI64)
    return compare_ints(e->op, form(e->args[0]), form(e->args[1]));
  return value(e);
}

std::string_view rule_name(Rule rule) { return kRuleNames[static_cast<size_t>(rule)]; }

Expr simplify(const Expr& e, const Ranges& ranges, const SimplifyOptions& options) {
  Ranges own = ranges;
  return Simplifier(own, options).simplify(e);
}

}  // namespace hone::ir
