#include "hone/ir/passes/size_needs.h"

#include <algorithm>
#include <numeric>

#include "hone/ir/scalar.h"
#include "hone/ir/simplify.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

bool uses_inner(const Expr& e, const std::function<bool(const Var*)>& is_inner) {
  if (e->op == Op::kVar) return is_inner(e->var.get());
  return std::any_of(e->args.begin(), e->args.end(),
                     [&](const Expr& a) { return uses_inner(a, is_inner); });
}

std::optional<Linear> constant_bound(const Expr& e, const Ranges& ranges, bool most) {
  const Interval all = ranges.of(e);
  if (most ? all.hi == kPosInf : all.lo == kNegInf) return std::nullopt;
  return Linear{most ? all.hi : all.lo, {}};
}

// The bound of x % d. If x has a run of values that crosses no multiple of d, it is that of the
// first or the last of them.
std::optional<Linear> modulo_bound(const Expr& e, const std::function<bool(const Var*)>& is_inner,
                                   const Ranges& ranges, bool most) {
  const int64_t d = e->args[1]->int_value;
  const Linear whole = linearize(e->args[0]);
  const auto first = bound_of(whole, is_inner, ranges, false);
  const auto last = bound_of(whole, is_inner, ranges, true);
  const auto length = first && last ? add(*last, *first, -1) : std::nullopt;
  if (!length || !length->is_constant() || length->constant >= d)
    return Linear{most ? d - 1 : 0, {}};
  const Expr start = floormod(to_expr(*first), d);
  const Expr crosses_none = less(start + length->constant, constant(d));
  const Expr bound = most ? select(crosses_none, start + length->constant, constant(d - 1))
                          : select(crosses_none, start, constant(0));
  return linearize(simplify(bound, ranges));
}

std::optional<Linear> atom_bound(const Expr& e, const std::function<bool(const Var*)>& is_inner,
                                 const Ranges& ranges, bool most) {
  if (e->op == Op::kFloorMod && has_positive_divisor(*e))
    return modulo_bound(e, is_inner, ranges, most);
  if (e->op == Op::kFloorDiv && has_positive_divisor(*e)) {
    const auto inner = bound_of(linearize(e->args[0]), is_inner, ranges, most);
    if (!inner) return std::nullopt;
    return linearize(simplify(floordiv(to_expr(*inner), e->args[1]->int_value), ranges));
  }
  return constant_bound(e, ranges, most);
}

}  // namespace

bool has_positive_divisor(const ExprNode& e) {
  const bool divides = e.op == Op::kFloorDiv || e.op == Op::kFloorMod;
  return divides && is_const_int(e.args[1]) && e.args[1]->int_value > 0;
}

std::optional<Linear> bound_of(const Linear& form, const std::function<bool(const Var*)>& is_inner,
                               const Ranges& ranges, bool most) {
  std::optional<Linear> sum = Linear{form.constant, {}};
  for (const auto& [e, c] : form.terms) {
    std::optional<Linear> part = atom(e);
    if (uses_inner(e, is_inner)) part = atom_bound(e, is_inner, ranges, (c > 0) == most);
    if (part) sum = add(*sum, *part, c);
    if (!part || !sum) return std::nullopt;
  }
  return sum;
}

// Loops end at ceil(size / step) * chunk and the like, which is at most (unit * size + more) /
// divisor.
namespace {

struct SizeBound {
  int form = 0;
  int64_t unit = 1, more = 0, divisor = 1;
};

std::optional<SizeBound> size_bound(const Expr& end, const FormOf& form_of) {
  if (const auto form = form_of(end)) return SizeBound{.form = *form};
  if (end->op == Op::kMin || end->op == Op::kMax) {
    for (const size_t i : {0, 1}) {
      const bool is_other = is_const_int(end->args[1 - i]);
      // An iteration that runs shows that the end is not 0.
      const bool holds = end->op == Op::kMin || is_const_int(end->args[1 - i], 0);
      if (is_other && holds) return size_bound(end->args[i], form_of);
    }
    return std::nullopt;
  }
  if (has_positive_divisor(*end) && end->op == Op::kFloorDiv) {
    auto inner = size_bound(end->args[0], form_of);
    if (inner) inner->divisor *= end->args[1]->int_value;
    return inner;
  }
  const Linear form = linearize(end);
  if (form.terms.size() != 1 || form.terms[0].second <= 0) return std::nullopt;
  const auto& [e, c] = form.terms[0];
  if (c == 1 && form.constant == 0) return std::nullopt;
  auto inner = size_bound(e, form_of);
  if (!inner) return std::nullopt;
  inner->unit *= c;
  inner->more = inner->more * c + form.constant * inner->divisor;
  return inner;
}

}  // namespace

bool has_loaded_end(std::span<const StmtNode* const> around) {
  return std::any_of(around.begin(), around.end(), [](const StmtNode* s) {
    return s->kind == StmtKind::kFor && has_load(s->extent);
  });
}

std::optional<Need> need_of_loop(const StmtNode& loop, const FormOf& form_of) {
  if (loop.kind != StmtKind::kFor || !is_const_int(loop.min) || !has_load(loop.extent))
    return std::nullopt;
  const auto end = size_bound(loop.extent, form_of);
  if (!end) return std::nullopt;
  const auto from_min = add(atom(variable(loop.var)), {loop.min->int_value, {}}, -1);
  auto at = from_min ? scale(*from_min, end->divisor) : std::nullopt;
  if (at) at = add(*at, {end->more, {}}, -1);
  if (!at) return std::nullopt;
  return Need{end->form, *at, end->unit};
}

const StmtNode* carrying_loop(const Buffer& buffer, std::span<const StmtNode* const> around) {
  const auto memory = std::find_if(around.begin(), around.end(), [&](const StmtNode* s) {
    return s->kind == StmtKind::kAlloc && s->buffer.get() == &buffer;
  });
  const auto loop = std::find_if(memory, around.end(),
                                 [](const StmtNode* s) { return s->kind == StmtKind::kFor; });
  const bool in_order = loop != around.end() && ((*loop)->for_kind == ForKind::kSerial ||
                                                 (*loop)->for_kind == ForKind::kVectorized);
  return in_order ? *loop : nullptr;
}

Need strengthened(Need need, int64_t multiple) {
  int64_t rows = need.unit * multiple;
  for (const auto& term : need.at.terms) rows = std::gcd(rows, term.second);
  if (rows > 1) need.at.constant += rows - 1 - floor_mod(need.at.constant, rows);
  return need;
}

std::vector<RunNeed> needed_by_either(const std::vector<RunNeed>& a,
                                      const std::vector<RunNeed>& b) {
  std::vector<RunNeed> both;
  for (const RunNeed& one : a) {
    for (const RunNeed& other : b) {
      if (one.form == other.form) both.push_back({one.form, std::min(one.least, other.least)});
    }
  }
  return both;
}

std::vector<RunNeed> needed_by_all(std::vector<RunNeed> a, const std::vector<RunNeed>& b) {
  for (const RunNeed& other : b) {
    const auto own = std::find_if(a.begin(), a.end(),
                                  [&](const RunNeed& one) { return one.form == other.form; });
    if (own == a.end())
      a.push_back(other);
    else
      own->least = std::max(own->least, other.least);
  }
  return a;
}

}  // namespace hone::ir
