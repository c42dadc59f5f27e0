#include "hone/ir/passes/size_limits.h"

#include <algorithm>
#include <numeric>

#include "hone/ir/simplify.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

// Limits that follow from others are found in this many rounds at most.
constexpr int kRounds = 4;
// So many uses of a buffer are asked for a limit that could hold for all, before the laxest one of
// all uses is tried.
constexpr size_t kAskedUses = 6;

// Returns whether an integer quotient may trap, or an address be wrong, where its operands are
// undefined.
bool is_quotient(const ExprNode& e) {
  const bool divides =
      e.op == Op::kDiv || e.op == Op::kRem || e.op == Op::kFloorDiv || e.op == Op::kFloorMod;
  return divides && !is_float(e.type);
}

// Returns whether an index is one of an array of this extent whatever the elements are that it is
// computed from.
bool is_clamped(const Expr& index, int64_t extent) {
  const Interval places = Ranges().of(index);
  return places.lo >= 0 && places.hi < extent;
}

// Returns those of the needs that are the same in all iterations.
std::vector<RunNeed> runs_of(const std::vector<Need>& needs) {
  std::vector<RunNeed> runs;
  for (const Need& need : needs) {
    if (!need.at.is_constant() || need.at.constant < 0) continue;
    runs = needed_by_all(std::move(runs), {{need.form, need.at.constant / need.unit + 1}});
  }
  return runs;
}

}  // namespace

SizeLimits::SizeLimits(const Program& program, const std::vector<ParamLimit>& given,
                       BufferPtr sizes, RunFacts facts)
    : sizes_(std::move(sizes)), facts_(std::move(facts)) {
  for (const Phase& phase : program.phases) {
    std::vector<const StmtNode*> around;
    if (phase.body && !phase.prepare) collect(*phase.body, around);
  }
  for (const Param& param : program.params) {
    if (param.role == Role::kOutput) outputs_.insert(param.buffer.get());
  }
  for (const ParamLimit& one : given) {
    const SizeLimit& g = one.limit;
    const Param& param = program.params[one.param];
    if (param.role != Role::kOutput || pinned_.contains(param.buffer.get())) continue;
    Limit limit{g.form, g.dimension, nullptr, g.unit};
    const Expr index = variable(index_);
    limit.at = (g.period > 0 ? floormod(index, g.period) : index) * g.scale - g.offset;
    limits_[param.buffer.get()].push_back(std::move(limit));
    if (std::find(forms_.begin(), forms_.end(), g.form) == forms_.end()) forms_.push_back(g.form);
  }
  add_forms();
  keep_closed();
  for (int round = 0; round < kRounds; ++round) {
    size_t before = 0, after = 0;
    for (const auto& entry : limits_) before += entry.second.size();
    for (const int form : forms_) {
      for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
        infer(*it, form);
      }
    }
    for (const auto& entry : limits_) after += entry.second.size();
    if (before == after) break;
  }
}

// Sizes that no output has may decide what is needed of an input.
void SizeLimits::add_forms() {
  const auto add = [&](const Need& need) {
    if (std::find(forms_.begin(), forms_.end(), need.form) == forms_.end())
      forms_.push_back(need.form);
  };
  for (const Buffer* buffer : order_) {
    for (const Use& use : uses_[buffer]) {
      const bool has_facts =
          !facts_.places.empty() || (facts_.needs_of_condition && !use.facts.empty());
      if (!sizes_ && !has_facts) continue;
      for (const Need& need : needs_of(use, scope_of(use))) add(need);
    }
  }
}

// The limits of outputs hold together or not at all, so one that is dropped may drop others.
void SizeLimits::keep_closed() {
  for (bool changed = true; changed;) {
    changed = false;
    for (auto& [buffer, limits] : limits_) {
      for (size_t i = 0; i < limits.size() && !changed; ++i) {
        if (is_closed(buffer, limits[i])) continue;
        limits.erase(limits.begin() + static_cast<std::ptrdiff_t>(i));
        changed = true;
      }
      if (changed) break;
    }
  }
}

void SizeLimits::note(const BufferPtr& buffer) {
  if (std::find(order_.begin(), order_.end(), buffer.get()) == order_.end())
    order_.push_back(buffer.get());
}

void SizeLimits::pin(const Expr& e) {
  visit(e, [&](const Expr& node) {
    if (node->op == Op::kLoad) pinned_.insert(node->buffer.get());
  });
}

void SizeLimits::collect_value(const Expr& e, size_t site, Facts& facts) {
  if (e->op == Op::kLoad) {
    note(e->buffer);
    for (size_t d = 0; d < e->args.size(); ++d) {
      if (is_clamped(e->args[d], e->buffer->shape[d]))
        collect_value(e->args[d], site, facts);
      else
        pin(e->args[d]);
    }
    collect_load(e, site, facts);
    return;
  }
  if (is_quotient(*e)) pin(e);
  if (e->op != Op::kSelect) {
    for (const Expr& arg : e->args) collect_value(arg, site, facts);
    return;
  }
  collect_value(e->args[0], site, facts);
  for (const bool holds : {true, false}) {
    facts.emplace_back(e->args[0], holds);
    collect_value(e->args[holds ? 1 : 2], site, facts);
    facts.pop_back();
  }
}

void SizeLimits::collect_load(const Expr& load, size_t site, Facts& facts) {
  const auto chosen = std::find_if(load->args.begin(), load->args.end(),
                                   [](const Expr& index) { return index->op == Op::kSelect; });
  if (chosen == load->args.end()) {
    uses_[load->buffer.get()].push_back({site, load, facts});
    return;
  }
  for (const bool holds : {true, false}) {
    std::vector<Expr> indices = load->args;
    indices[static_cast<size_t>(chosen - load->args.begin())] = (*chosen)->args[holds ? 1 : 2];
    facts.emplace_back((*chosen)->args[0], holds);
    collect_load(ir::load(load->buffer, std::move(indices)), site, facts);
    facts.pop_back();
  }
}

void SizeLimits::collect(const StmtNode& s, std::vector<const StmtNode*>& around) {
  if (s.kind == StmtKind::kStore) {
    note(s.buffer);
    for (const Expr& index : s.indices) pin(index);
    sites_.push_back({&s, around});
    Facts facts;
    for (const StmtNode* outer : around)
      if (outer->kind == StmtKind::kIf) facts.emplace_back(outer->condition, true);
    collect_value(s.value, sites_.size() - 1, facts);
    return;
  }
  if (s.kind == StmtKind::kAlloc) {
    // Passes double statements, so that a buffer may be allocated at several places.
    std::unordered_set<const Var*> scope;
    const auto known = scopes_.find(s.buffer.get());
    for (const StmtNode* outer : around) {
      if (outer->var && (known == scopes_.end() || known->second.contains(outer->var.get())))
        scope.insert(outer->var.get());
    }
    scopes_[s.buffer.get()] = std::move(scope);
  }
  // A hint may have any address.
  if (s.kind != StmtKind::kPrefetch) for_each_expr(s, [&](const Expr& e) { pin(e); });
  for (const BufferPtr& buffer : s.buffers) pinned_.insert(buffer.get());
  for (const Box& box : s.boxes) pinned_.insert(box.buffer.get());
  around.push_back(&s);
  for (const Stmt& child : s.body) collect(*child, around);
  around.pop_back();
}

Ranges SizeLimits::scope_of(const Use& use) const {
  Ranges ranges;
  for (const StmtNode* s : sites_[use.site].around) {
    if (s->kind == StmtKind::kFor) ranges.bind_loop(s->var, s->min, s->extent);
    if (s->kind == StmtKind::kIf) ranges.assume(s->condition);
  }
  for (const auto& [condition, holds] : use.facts) ranges.assume(condition, holds);
  return ranges;
}

// Where the limit has the element with these indices.
Linear SizeLimits::place(const Limit& limit, std::span<const Expr> indices,
                         const Ranges& ranges) const {
  const auto d = static_cast<size_t>(limit.dimension);
  // A single element without an index has a limit of the loops around it only.
  const Expr index = d < indices.size() ? indices[d] : constant(0);
  return linearize(simplify(substitute(limit.at, {{index_, index}}), ranges));
}

std::vector<Need> SizeLimits::needs(const StmtNode& store, const Ranges& ranges) const {
  std::vector<Need> all;
  const auto it = limits_.find(store.buffer.get());
  if (it == limits_.end()) return all;
  for (const Limit& limit : it->second) {
    all.push_back({limit.form, place(limit, store.indices, ranges), limit.unit});
  }
  return all;
}

// When a load is needed: only if all of these hold. What selects choose comes first, as it has the
// size itself, and tiles of a reader may need more.
std::vector<Need> SizeLimits::needs_of(const Use& use, const Ranges& ranges) const {
  const Site& site = sites_[use.site];
  std::vector<Need> all;
  if (facts_.needs_of_condition) {
    for (const auto& [condition, holds] : use.facts) {
      for (Need& need : facts_.needs_of_condition(condition, holds, ranges))
        all.push_back(std::move(need));
    }
  }
  for (Need& need : needs(*site.store, ranges)) all.push_back(std::move(need));
  for (const StmtNode* s : site.around) {
    if (const auto need = need_of_loop(*s, sizes_.get())) all.push_back(*need);
  }
  for (const IndexPlaces& places : facts_.places) {
    if (places.data == use.load->buffer) add_places(places, use.load->args, ranges, all);
  }
  for (Need& need : all) {
    const auto f = static_cast<size_t>(need.form);
    need = strengthened(std::move(need), f < facts_.multiples.size() ? facts_.multiples[f] : 1);
  }
  return all;
}

bool SizeLimits::has_limit(const Buffer* buffer, int form, int dimension) const {
  const auto it = limits_.find(buffer);
  return it != limits_.end() &&
         std::any_of(it->second.begin(), it->second.end(), [&](const Limit& l) {
           return l.form == form && (dimension < 0 || l.dimension == dimension);
         });
}

// Returns whether own < unit * size in all runs, as the place is counted from the size: unit * size
// - 1 - i. A minimum is no more than either of its arguments.
bool SizeLimits::stays_within(const Linear& own, const Limit& limit, const Ranges& ranges) const {
  if (!facts_.form_of) return false;
  return std::any_of(own.terms.begin(), own.terms.end(), [&](const auto& term) {
    const Expr& e = term.first;
    const int64_t c = term.second;
    const Linear rest = without(own, e);
    if (c > 0 && e->op == Op::kMin) {
      return std::any_of(e->args.begin(), e->args.end(), [&](const Expr& bound) {
        const auto most = add(rest, linearize(bound), c);
        return most && stays_within(*most, limit, ranges);
      });
    }
    if (c != limit.unit || facts_.form_of(e, ranges) != limit.form) return false;
    const auto gap = add({-1, {}}, rest, -1);
    return gap && ranges.proves_nonnegative(*gap);
  });
}

// Each element beyond the limit is read only to compute elements that are beyond theirs.
bool SizeLimits::is_closed(const Buffer* buffer, const Limit& limit) const {
  const auto it = uses_.find(buffer);
  if (it == uses_.end()) return true;
  return std::all_of(it->second.begin(), it->second.end(), [&](const Use& use) {
    const Ranges ranges = scope_of(use);
    const Linear own = place(limit, use.load->args, ranges);
    if (stays_within(own, limit, ranges)) return true;
    const std::vector<Need> all = needs_of(use, ranges);
    return std::any_of(all.begin(), all.end(), [&](const Need& need) {
      if (need.form != limit.form) return false;
      const auto result = scale(need.at, limit.unit);
      const auto gap = result ? add(*result, own, -need.unit) : std::nullopt;
      return gap && ranges.proves_nonnegative(*gap);
    });
  });
}

bool SizeLimits::try_limit(const Buffer* buffer, Limit limit) {
  // What a buffer's own updates read counts as not needed, too.
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

// Of limits that differ in a constant only, tries the one within which all others are: that of the
// last row of a window whose rows are read one by one.
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

std::vector<Interval> SizeLimits::indices_of_param(const BufferPtr& buffer) const {
  const size_t rank = buffer->shape.size();
  std::vector<Interval> all(rank, Interval{0, -1});
  if (pinned_.contains(buffer.get())) {
    for (size_t d = 0; d < rank; ++d) all[d] = {0, buffer->shape[d] - 1};
    return all;
  }
  const auto it = uses_.find(buffer.get());
  if (it == uses_.end()) return all;
  for (const Use& use : it->second) {
    const Ranges ranges = scope_of(use);
    for (size_t d = 0; d < rank; ++d) {
      const Interval whole{0, buffer->shape[d] - 1};
      const Interval one = intersect(ranges.of(simplify(use.load->args[d], ranges)), whole);
      if (!one.empty()) all[d] = all[d].empty() ? one : join(all[d], one);
    }
  }
  return all;
}

std::vector<RunNeed> SizeLimits::runs_of_stores(const BufferPtr& output) const {
  std::optional<std::vector<RunNeed>> all;
  for (const Site& site : sites_) {
    if (site.store->buffer != output) continue;
    Ranges ranges;
    for (const StmtNode* s : site.around) {
      if (s->kind == StmtKind::kFor) ranges.bind_loop(s->var, s->min, s->extent);
    }
    const std::vector<RunNeed> own = runs_of(needs(*site.store, ranges));
    all = all ? needed_by_either(*all, own) : own;
  }
  // Statements other than stores write it, too.
  return all && !pinned_.contains(output.get()) ? *all : std::vector<RunNeed>();
}

std::vector<RunNeed> SizeLimits::runs_of_loads(const BufferPtr& input) const {
  std::optional<std::vector<RunNeed>> all;
  const auto it = uses_.find(input.get());
  if (it == uses_.end() || pinned_.contains(input.get())) return {};
  for (const Use& use : it->second) {
    const std::vector<RunNeed> own = runs_of(needs_of(use, scope_of(use)));
    all = all ? needed_by_either(*all, own) : own;
  }
  return all ? *all : std::vector<RunNeed>();
}

std::vector<SizeLimit> SizeLimits::of_param(const BufferPtr& buffer) const {
  if (scopes_.contains(buffer.get())) return {};
  return of_buffer(buffer);
}

std::vector<SizeLimit> SizeLimits::of_buffer(const BufferPtr& buffer) const {
  std::vector<SizeLimit> all;
  const auto it = limits_.find(buffer.get());
  if (it == limits_.end()) return all;
  const auto scope = scopes_.find(buffer.get());
  if (scope != scopes_.end() && !scope->second.empty()) return all;
  for (const Limit& limit : it->second) {
    const Linear at = linearize(limit.at);
    if (at.terms.size() != 1 || at.terms[0].second <= 0) continue;
    const auto& [e, scale] = at.terms[0];
    const int64_t g = std::gcd(std::gcd(scale, at.constant), limit.unit);
    SizeLimit one{limit.form, limit.dimension, 0, scale / g, -at.constant / g, limit.unit / g};
    if (e->op == Op::kFloorMod && has_positive_divisor(*e) && e->args[0]->op == Op::kVar) {
      one.period = e->args[1]->int_value;
    } else if (e->op == Op::kFloorDiv && has_positive_divisor(*e) && e->args[0]->op == Op::kVar) {
      // x // d < n is x < n * d; with a factor, x // d is at least (x - d + 1) / d.
      const int64_t d = e->args[1]->int_value;
      one.offset = one.offset * d + (one.scale == 1 ? 0 : one.scale * (d - 1));
      one.unit *= d;
    } else if (e->op != Op::kVar) {
      continue;
    }
    all.push_back(one);
  }
  return all;
}

}  // namespace hone::ir
