#include "hone/ir/passes/index_places.h"

#include <algorithm>

#include "hone/ir/simplify.h"

namespace hone::ir {
namespace {

// The load of an index that is kept inside a dimension, min(max(select(i < 0, i + n, i), 0), n -
// 1); null if an expression is anything else.
Expr index_load(const Expr& e) {
  switch (e->op) {
    case Op::kLoad: return e;
    case Op::kCast: return index_load(e->args[0]);
    case Op::kSelect: {
      const Expr& condition = e->args[0];
      const bool is_from_end = condition->op == Op::kLt && is_const_int(condition->args[1], 0) &&
                               equal(condition->args[0], e->args[2]);
      return is_from_end ? index_load(e->args[2]) : nullptr;
    }
    case Op::kMin:
    case Op::kMax:
      if (is_const_int(e->args[1])) return index_load(e->args[0]);
      return is_const_int(e->args[0]) ? index_load(e->args[1]) : nullptr;
    default: return nullptr;
  }
}

}  // namespace

void add_places(const IndexPlaces& known, std::span<const Expr> places, const Ranges& ranges,
                std::vector<Need>& needs) {
  for (const Expr& place : places) {
    // An offset is that of a border.
    const Linear at = linearize(simplify(place, ranges));
    if (at.terms.size() != 1 || at.terms[0].second != 1) continue;
    const Expr index = index_load(at.terms[0].first);
    if (!index || index->buffer != known.indices || index->args.size() != 1) continue;
    const Linear element = linearize(simplify(index->args[0], ranges));
    const bool is_needed =
        known.within < 0 || std::any_of(needs.begin(), needs.end(), [&](const Need& need) {
          const auto gap = add(need.at, element, -need.unit);
          return need.form == known.within && gap && ranges.proves_nonnegative(*gap);
        });
    if (!is_needed) continue;
    const Expr& inside = at.terms[0].first;
    for (const SizeLimit& limit : known.limits) {
      const Expr digit = limit.period > 0 ? floormod(inside, limit.period) : inside;
      needs.push_back({limit.form, linearize(digit), limit.unit});
    }
  }
}

}  // namespace hone::ir
