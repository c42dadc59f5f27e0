// The limits of buffers that follow from those of what reads them.
#include <algorithm>

#include "hone/ir/passes/size_limits.h"
#include "hone/ir/simplify.h"

namespace hone::ir {
namespace {

// So many uses of a buffer are asked for a limit that could hold for all, before the laxest one of
// all uses is tried.
constexpr size_t kAskedUses = 6;

}  // namespace

bool SizeLimits::try_limit(const Buffer* buffer, Limit limit) {
  // A buffer's own updates count as readers that need nothing beyond the limit.
  std::vector<Limit>& own = limits_[buffer];
  own.push_back(limit);
  if (is_closed(buffer, own.back())) return true;
  own.pop_back();
  return false;
}

void SizeLimits::infer(const Buffer* buffer, int form) {
  const auto it = uses_.find(buffer);
  // All elements of an output are needed, but for those that are given.
  if (it == uses_.end() || pinned_.contains(buffer) || outputs_.contains(buffer)) return;
  for (size_t i = 0; i < std::min(it->second.size(), kAskedUses); ++i)
    try_use(buffer, form, it->second[i]);
  if (it->second.size() > kAskedUses) try_laxest(buffer, form, it->second);
  if (!has_limit(buffer, form)) try_carried(buffer, form, it->second);
}

bool SizeLimits::is_inside(const Buffer* buffer, const Var* var) const {
  const auto scope = scopes_.find(buffer);
  return scope == scopes_.end() || !scope->second.contains(var);
}

// The limits that hold for one use of a buffer, in each dimension: the scores of self-attention end
// at the same size in both.
std::vector<SizeLimits::Limit> SizeLimits::limits_of_use(const Buffer* buffer, int form,
                                                         const Use& use,
                                                         const std::vector<Need>& needs,
                                                         const Ranges& ranges) const {
  const auto is_inner = [&](const Var* var) { return is_inside(buffer, var); };
  std::vector<Limit> limits;
  for (const Need& need : needs) {
    if (need.form != form) continue;
    for (size_t d = 0; d < use.load->args.size(); ++d) {
      const auto dimension = static_cast<int>(d);
      if (has_limit(buffer, form, dimension)) continue;
      const Linear index = linearize(simplify(use.load->args[d], ranges));
      for (Limit& limit : limits_at(need, index, is_inner, ranges)) {
        limit.dimension = dimension;
        limits.push_back(std::move(limit));
      }
    }
  }
  return limits;
}

// Tries the limits of one use, one in each dimension.
void SizeLimits::try_use(const Buffer* buffer, int form, const Use& use) {
  const Ranges ranges = scope_of(use);
  const std::vector<Need> needs = needs_of(use, ranges);
  for (Limit& limit : limits_of_use(buffer, form, use, needs, ranges)) {
    if (!has_limit(buffer, form, limit.dimension)) (void)try_limit(buffer, std::move(limit));
  }
  // A buffer inside loops whose iterations are needed or not with all its elements.
  if (has_limit(buffer, form)) return;
  const auto is_inner = [&](const Var* var) { return is_inside(buffer, var); };
  for (const Need& need : needs) {
    if (need.form != form || has_limit(buffer, form)) continue;
    const auto least = bound_of(need.at, is_inner, ranges);
    if (!least || least->is_constant()) continue;
    (void)try_limit(buffer, {form, 0, to_expr(*least), need.unit});
  }
}

// Tries the widest of limits that differ in a constant only: that of the last row of a window whose
// rows are read one by one.
void SizeLimits::try_laxest(const Buffer* buffer, int form, const std::vector<Use>& uses) {
  std::vector<std::pair<Limit, Linear>> laxest;
  for (const Use& use : uses) {
    const Ranges ranges = scope_of(use);
    for (Limit& limit : limits_of_use(buffer, form, use, needs_of(use, ranges), ranges)) {
      const Linear at = linearize(limit.at);
      const auto gap_to = [&](const std::pair<Limit, Linear>& other) -> std::optional<int64_t> {
        const auto gap = add(at, other.second, -1);
        const bool is_alike = gap && gap->is_constant() && other.first.unit == limit.unit &&
                              other.first.dimension == limit.dimension;
        return is_alike ? std::optional(gap->constant) : std::nullopt;
      };
      const auto alike = std::find_if(laxest.begin(), laxest.end(),
                                      [&](const auto& other) { return gap_to(other).has_value(); });
      if (alike == laxest.end())
        laxest.emplace_back(std::move(limit), at);
      else if (*gap_to(*alike) < 0)
        *alike = {std::move(limit), at};
    }
  }
  for (auto& [limit, at] : laxest) {
    if (!has_limit(buffer, form, limit.dimension)) (void)try_limit(buffer, std::move(limit));
  }
}

// Tries the limit of what a loop carries from one iteration to the next, as running sums are: all
// reads are in the loop, so what an iteration stores is needed by itself and later ones only. What
// is stored before the loop has no limit, which its variable tells.
void SizeLimits::try_carried(const Buffer* buffer, int form, const std::vector<Use>& uses) {
  const StmtNode* loop =
      uses.empty() ? nullptr : carrying_loop(*buffer, sites_[uses.front().site].around);
  if (loop == nullptr) return;
  const auto is_in_loop = [&](const Site& site) {
    return carrying_loop(*buffer, site.around) == loop;
  };
  const bool reads_in_loop = std::all_of(
      uses.begin(), uses.end(), [&](const Use& use) { return is_in_loop(sites_[use.site]); });
  const bool has_own_variable = std::none_of(sites_.begin(), sites_.end(), [&](const Site& site) {
    return site.store->buffer.get() == buffer && !is_in_loop(site) &&
           std::any_of(site.around.begin(), site.around.end(),
                       [&](const StmtNode* s) { return s->var == loop->var; });
  });
  if (!reads_in_loop || !has_own_variable) return;
  const auto is_inner = [&](const Var* var) {
    return var != loop->var.get() && is_inside(buffer, var);
  };
  for (const Use& use : uses) {
    const Ranges ranges = scope_of(use);
    for (const Need& need : needs_of(use, ranges)) {
      if (need.form != form || has_limit(buffer, form)) continue;
      const auto least = bound_of(need.at, is_inner, ranges);
      const bool grows = least && least->coefficient(loop->var) > 0 &&
                         !depends(without(*least, variable(loop->var)), loop->var);
      if (grows) (void)try_limit(buffer, {form, 0, to_expr(*least), need.unit, loop->var});
    }
  }
}

// The limits of a dimension that follow for an element with this index.
std::vector<SizeLimits::Limit> SizeLimits::limits_at(
    const Need& need, const Linear& index, const std::function<bool(const Var*)>& is_inner,
    const Ranges& ranges) const {
  std::vector<Limit> limits;
  const Expr x = variable(index_);
  // A sum that has an atom in common with the index.
  for (const auto& [e, c] : index.terms) {
    const int64_t k = need.at.coefficient(e);
    if (k <= 0 || c <= 0) continue;
    const auto scaled = scale(need.at, c);
    const auto rest = scaled ? add(*scaled, index, -k) : std::nullopt;
    const auto least = rest ? bound_of(*rest, is_inner, ranges) : std::nullopt;
    if (least) limits.push_back({need.form, 0, x * k + to_expr(*least), need.unit * c});
  }
  // A quotient or remainder of the index.
  if (need.at.terms.size() != 1) return limits;
  const auto& [e, c] = need.at.terms[0];
  if (!has_positive_divisor(*e)) return limits;
  const auto shift = add(linearize(e->args[0]), index, -1);
  if (!shift || !shift->is_constant()) return limits;
  const Expr at = make(e->op, {x + shift->constant, e->args[1]}) * c + need.at.constant;
  limits.push_back({need.form, 0, at, need.unit});
  return limits;
}

}  // namespace hone::ir
