#include "hone/ir/linear.h"

#include <algorithm>
#include <numeric>

#include "hone/base/assert.h"

namespace hone::ir {
namespace {

template <typename T>
int order(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

std::optional<int64_t> multiply_add(int64_t a, int64_t b, int64_t factor) {
  int64_t product = 0;
  int64_t sum = 0;
  if (__builtin_mul_overflow(b, factor, &product) || __builtin_add_overflow(a, product, &sum))
    return std::nullopt;
  return sum;
}

// The form of a node if it is a sum or a product with a constant and nothing overflows.
std::optional<Linear> combine(const Expr& e) {
  switch (e->op) {
    case Op::kAdd: return add(linearize(e->args[0]), linearize(e->args[1]));
    case Op::kSub: return add(linearize(e->args[0]), linearize(e->args[1]), -1);
    case Op::kNeg: return scale(linearize(e->args[0]), -1);
    case Op::kMul: {
      const Linear a = linearize(e->args[0]);
      const Linear b = linearize(e->args[1]);
      if (b.is_constant()) return scale(a, b.constant);
      if (a.is_constant()) return scale(b, a.constant);
      return std::nullopt;
    }
    default: return std::nullopt;
  }
}

}  // namespace

int64_t Linear::coefficient(const Expr& atom) const {
  for (const auto& [e, c] : terms) {
    if (equal(e, atom)) return c;
  }
  return 0;
}

int64_t Linear::coefficient(const VarPtr& var) const {
  for (const auto& [e, c] : terms) {
    if (e->op == Op::kVar && e->var == var) return c;
  }
  return 0;
}

int compare(const Expr& a, const Expr& b) {
  if (a == b) return 0;
  if (const int c = order(a->op, b->op)) return c;
  if (const int c = order(a->type, b->type)) return c;
  if (a->op == Op::kVar) return a->var == b->var ? 0 : order(a->var->name, b->var->name);
  if (const int c = order(a->int_value, b->int_value)) return c;
  if (const int c = order(a->float_value, b->float_value)) return c;
  if (a->op == Op::kLoad && a->buffer != b->buffer) {
    if (const int c = order(a->buffer->name, b->buffer->name)) return c;
  }
  if (const int c = order(a->args.size(), b->args.size())) return c;
  for (size_t i = 0; i < a->args.size(); ++i) {
    if (const int c = compare(a->args[i], b->args[i])) return c;
  }
  return 0;
}

Linear atom(const Expr& e) {
  HONE_ASSERT(e->type == DType::kI64, "a linear form of a type other than i64");
  if (e->op == Op::kInt) return {e->int_value, {}};
  return {0, {{e, 1}}};
}

Linear linearize(const Expr& e) {
  std::optional<Linear> form = combine(e);
  return form ? std::move(*form) : atom(e);
}

Expr to_expr(const Linear& form) {
  Expr sum;
  for (const auto& [e, c] : form.terms) {
    if (c > 0) sum = sum ? sum + e * c : e * c;
  }
  int64_t constant_left = form.constant;
  if (!sum && constant_left != 0 && !form.terms.empty()) {
    sum = constant(constant_left);
    constant_left = 0;
  }
  for (const auto& [e, c] : form.terms) {
    if (c >= 0) continue;
    const bool can_negate = c != INT64_MIN;
    sum = !sum || !can_negate ? (sum ? sum + e * c : e * c) : sum - e * -c;
  }
  if (!sum) return constant(constant_left);
  return constant_left < 0 && constant_left != INT64_MIN ? sum - -constant_left
                                                         : sum + constant_left;
}

std::optional<Linear> add(const Linear& a, const Linear& b, int64_t factor) {
  if (factor == 0) return a;
  Linear sum = a;
  const auto c = multiply_add(a.constant, b.constant, factor);
  if (!c) return std::nullopt;
  sum.constant = *c;
  bool added = false;
  for (const auto& [e, k] : b.terms) {
    auto it = sum.terms.begin();
    while (it != sum.terms.end() && !equal(it->first, e)) ++it;
    const auto total = multiply_add(it == sum.terms.end() ? 0 : it->second, k, factor);
    if (!total) return std::nullopt;
    if (it == sum.terms.end()) {
      sum.terms.emplace_back(e, *total);
      added = true;
    } else if (*total == 0) {
      sum.terms.erase(it);
    } else {
      it->second = *total;
    }
  }
  if (added) {
    std::stable_sort(sum.terms.begin(), sum.terms.end(),
                     [](const auto& x, const auto& y) { return compare(x.first, y.first) < 0; });
  }
  return sum;
}

std::optional<Linear> scale(const Linear& a, int64_t factor) { return add({}, a, factor); }

Linear without(const Linear& a, const Expr& atom) {
  Linear rest = a;
  std::erase_if(rest.terms, [&](const auto& term) { return equal(term.first, atom); });
  return rest;
}

int64_t coefficient_gcd(const Linear& a) {
  uint64_t g = 0;
  for (const auto& term : a.terms) {
    const auto c = static_cast<uint64_t>(term.second);
    g = std::gcd(g, term.second < 0 ? 0 - c : c);
  }
  return g > static_cast<uint64_t>(INT64_MAX) ? 1 : static_cast<int64_t>(g);
}

bool equal(const Linear& a, const Linear& b) {
  const std::optional<Linear> difference = add(a, b, -1);
  return difference && difference->is_constant() && difference->constant == 0;
}

bool uses(const Expr& e, const Var* var) {
  if (e->op == Op::kVar) return e->var.get() == var;
  return std::any_of(e->args.begin(), e->args.end(), [&](const Expr& a) { return uses(a, var); });
}

bool depends(const Linear& form, const VarPtr& var) {
  return std::any_of(form.terms.begin(), form.terms.end(),
                     [&](const auto& term) { return uses(term.first, var.get()); });
}

bool has_load(const Expr& e) {
  return e->op == Op::kLoad || std::any_of(e->args.begin(), e->args.end(), has_load);
}

}  // namespace hone::ir
