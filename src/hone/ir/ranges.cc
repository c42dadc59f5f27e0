#include "hone/ir/ranges.h"

#include <algorithm>

#include "hone/ir/scalar.h"

namespace hone::ir {
namespace {

// Saturating; an infinite operand gives that infinity.
int64_t add_bound(int64_t a, int64_t b, int64_t infinity) {
  if (a == infinity || b == infinity) return infinity;
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return a < 0 ? kNegInf : kPosInf;
  return sum;
}

int64_t mul_bound(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  const bool negative = (a < 0) != (b < 0);
  int64_t product = 0;
  const bool infinite = a == kNegInf || a == kPosInf || b == kNegInf || b == kPosInf;
  if (infinite || __builtin_mul_overflow(a, b, &product)) return negative ? kNegInf : kPosInf;
  return product;
}

Interval type_interval(DType type) {
  switch (type) {
    case DType::kBool: return {0, 1};
    case DType::kU8: return {0, 255};
    case DType::kI8: return {-128, 127};
    case DType::kU16: return {0, 65535};
    case DType::kI16: return {-32768, 32767};
    case DType::kU32: return {0, std::numeric_limits<uint32_t>::max()};
    case DType::kI32:
      return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
    default: return {};
  }
}

}  // namespace

Interval operator+(Interval a, Interval b) {
  return {add_bound(a.lo, b.lo, kNegInf), add_bound(a.hi, b.hi, kPosInf)};
}
Interval operator*(Interval a, int64_t factor) {
  const Interval r = {mul_bound(a.lo, factor), mul_bound(a.hi, factor)};
  return factor >= 0 ? r : Interval{r.hi, r.lo};
}
Interval operator*(Interval a, Interval b) { return join(a * b.lo, a * b.hi); }
Interval floor_div(Interval a, int64_t divisor) {
  return {a.lo == kNegInf ? kNegInf : floor_div(a.lo, divisor),
          a.hi == kPosInf ? kPosInf : floor_div(a.hi, divisor)};
}
Interval intersect(Interval a, Interval b) { return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)}; }
Interval join(Interval a, Interval b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

void Ranges::bind(const VarPtr& var, Interval interval) { vars_.emplace_back(var, interval); }

void Ranges::bind_loop(const VarPtr& var, const Expr& min, const Expr& extent) {
  const Interval low = of(min);
  const Interval high = low + of(extent) + Interval{-1, -1};
  bind(var, {low.lo, high.hi});
  if ((is_const_int(min) && is_const_int(extent)) || has_load(min) || has_load(extent)) return;
  const Linear first = linearize(min);
  const Linear length = linearize(extent);
  const Linear v = atom(variable(var));
  if (const auto f = add(v, first, -1)) assume_nonnegative(*f);
  auto left = add(first, length);
  if (left) left = add(*left, v, -1);
  if (left) left = add(*left, {1, {}}, -1);
  if (left) assume_nonnegative(*left);
  if (const auto ran = add(length, {1, {}}, -1)) assume_nonnegative(*ran);
}

void Ranges::assume_nonnegative(const Linear& form) {
  if (form.terms.size() == 1 && form.terms[0].first->op == Op::kVar) {
    // c*v + k >= 0: a tighter interval.
    const auto& [e, c] = form.terms[0];
    if (form.constant == kNegInf || c == kNegInf) return;
    const Interval bound = c > 0 ? Interval{-floor_div(form.constant, c), kPosInf}
                                 : Interval{kNegInf, floor_div(form.constant, -c)};
    const Interval known = of(e->var);
    const Interval tight = intersect(known, bound);
    if (!(tight == known)) bind(e->var, tight);
    return;
  }
  if (!form.is_constant()) facts_.push_back(form);
}

void Ranges::assume(const Expr& condition, bool holds) {
  const Op op = condition->op;
  if (op == Op::kNot) return assume(condition->args[0], !holds);
  if ((op == Op::kAnd && holds) || (op == Op::kOr && !holds)) {
    assume(condition->args[0], holds);
    assume(condition->args[1], holds);
    return;
  }
  if (!is_compare(op) || condition->args[0]->type != DType::kI64 || has_load(condition)) return;
  const auto difference =
      add(linearize(condition->args[1]), linearize(condition->args[0]), -1);  // b - a
  if (!difference) return;
  const auto nonnegative = [this](const std::optional<Linear>& form) {
    if (form) assume_nonnegative(*form);
  };
  const Linear one = {1, {}};
  if (op == Op::kLt) {
    nonnegative(holds ? add(*difference, one, -1) : scale(*difference, -1));
  } else if (op == Op::kLe) {
    const auto reversed = scale(*difference, -1);
    nonnegative(holds ? difference : reversed ? add(*reversed, one, -1) : std::nullopt);
  } else if ((op == Op::kEq) == holds) {
    nonnegative(difference);
    nonnegative(scale(*difference, -1));
  }
}

void Ranges::reset(Mark mark) {
  vars_.resize(mark.vars);
  facts_.resize(mark.facts);
}

Interval Ranges::of(const VarPtr& var) const {
  for (auto it = vars_.rbegin(); it != vars_.rend(); ++it) {
    if (it->first == var) return it->second;
  }
  return {};
}

Interval Ranges::of(const Linear& form) const {
  Interval sum = {form.constant, form.constant};
  for (const auto& [e, c] : form.terms) sum = sum + of_node(*e) * c;
  return sum;
}

Interval Ranges::of(const Expr& e) const {
  return e->type == DType::kI64 ? of(linearize(e)) : of_node(*e);
}

Interval Ranges::of_node(const ExprNode& e) const {
  if (e.op == Op::kInt) return {e.int_value, e.int_value};
  if (e.op == Op::kVar) return of(e.var);
  const Interval type = type_interval(e.type);
  if (e.type != DType::kI64) return type;
  switch (e.op) {
    case Op::kMul: return of(e.args[0]) * of(e.args[1]);
    case Op::kFloorDiv:
      if (!is_const_int(e.args[1]) || e.args[1]->int_value <= 0) return {};
      return floor_div(of(e.args[0]), e.args[1]->int_value);
    case Op::kFloorMod: {
      if (!is_const_int(e.args[1]) || e.args[1]->int_value <= 0) return {};
      const int64_t d = e.args[1]->int_value;
      const Interval a = of(e.args[0]);
      const Interval q = floor_div(a, d);
      if (q.is_point()) return {floor_mod(a.lo, d), floor_mod(a.hi, d)};
      return {0, d - 1};
    }
    case Op::kMin: {
      const Interval a = of(e.args[0]), b = of(e.args[1]);
      return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
    }
    case Op::kMax: {
      const Interval a = of(e.args[0]), b = of(e.args[1]);
      return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
    }
    case Op::kSelect: return join(of(e.args[1]), of(e.args[2]));
    case Op::kCast: return is_float(e.args[0]->type) ? type : type_interval(e.args[0]->type);
    default: return {};
  }
}

bool Ranges::proves(const Linear& form, int more_facts) const {
  if (of(form).lo >= 0) return true;
  if (more_facts == 0 || form.is_constant()) return false;
  for (const Linear& fact : facts_) {
    // form = k * fact + rest, where rest has one term less; then it is enough that rest >= 0.
    for (const auto& [e, c] : fact.terms) {
      const int64_t own = form.coefficient(e);
      if (own == 0 || (own < 0) != (c < 0) || own % c != 0) continue;
      const auto rest = add(form, fact, -(own / c));
      if (rest && proves(*rest, more_facts - 1)) return true;
      break;
    }
  }
  return false;
}

}  // namespace hone::ir
