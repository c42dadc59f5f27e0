#include "hone/ir/passes/size_limits.h"

#include <algorithm>
#include <numeric>

#include "hone/ir/simplify.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

// Limits that follow from others are found in this many rounds at most.
constexpr int kRounds = 4;

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
      const bool has_facts = !facts_.places.empty() ||
                             (facts_.needs_of_condition && !use.facts.empty()) ||
                             (facts_.form_of && has_loaded_end(sites_[use.site].around));
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

// A loop that ends at a size of the run ends before what it does not have decides an address.
void SizeLimits::collect_address(const Expr& index, size_t site) {
  if (!has_loaded_end(sites_[site].around)) return pin(index);
  visit(index, [&](const Expr& node) {
    if (node->op != Op::kLoad) return;
    note(node->buffer);
    uses_[node->buffer.get()].push_back({site, node, {}, true});
  });
}

void SizeLimits::collect(const StmtNode& s, std::vector<const StmtNode*>& around) {
  if (s.kind == StmtKind::kStore) {
    note(s.buffer);
    sites_.push_back({&s, around});
    for (const Expr& index : s.indices) collect_address(index, sites_.size() - 1);
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
    const bool is_outside = limit.along && ranges.of(limit.along) == Interval();
    if (!is_outside) all.push_back({limit.form, place(limit, store.indices, ranges), limit.unit});
  }
  return all;
}

// Adds when the value of a store is needed: what selects choose comes first, as it has the size
// itself, and tiles of a reader may need more.
void SizeLimits::add_needs_of_value(const Use& use, const Ranges& ranges,
                                    std::vector<Need>& all) const {
  if (facts_.needs_of_condition) {
    for (const auto& [condition, holds] : use.facts) {
      for (Need& need : facts_.needs_of_condition(condition, holds, ranges))
        all.push_back(std::move(need));
    }
  }
  for (Need& need : needs(*sites_[use.site].store, ranges)) all.push_back(std::move(need));
}

// When a load is needed: only if all of these hold.
std::vector<Need> SizeLimits::needs_of(const Use& use, const Ranges& ranges) const {
  std::vector<Need> all;
  if (!use.is_address) add_needs_of_value(use, ranges, all);
  for (const StmtNode* s : sites_[use.site].around) {
    const auto form_of = [&](const Expr& e) -> std::optional<int> {
      if (e->op == Op::kLoad && sizes_ && e->buffer == sizes_ && is_const_int(e->args[0]))
        return static_cast<int>(e->args[0]->int_value);
      return facts_.form_of ? facts_.form_of(e, ranges) : std::nullopt;
    };
    if (const auto need = need_of_loop(*s, form_of)) all.push_back(*need);
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
    if (limit.along || at.terms.size() != 1 || at.terms[0].second <= 0) continue;
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
