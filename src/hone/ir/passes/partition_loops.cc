#include "hone/ir/passes/partition_loops.h"

#include <algorithm>
#include <optional>

#include "hone/ir/passes/hoist_guards.h"
#include "hone/ir/scalar.h"
#include "hone/ir/simplify.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

int64_t count_statements(const std::vector<Stmt>& body) {
  int64_t n = 0;
  for (const Stmt& s : body) for_each_stmt(*s, [&](const StmtNode&) { ++n; });
  return n;
}

// The values of `var` for which a form is not negative whatever the other variables are; may be
// empty. Nothing if it does not depend linearly on var.
std::optional<Interval> nonnegative_interval(const std::optional<Linear>& form, const VarPtr& var,
                                             const Ranges& ranges) {
  if (!form) return std::nullopt;
  const int64_t c = form->coefficient(var);
  if (c == 0 || c == INT64_MIN) return std::nullopt;
  const Linear rest = without(*form, variable(var));
  if (depends(rest, var)) return std::nullopt;
  const int64_t low = ranges.of(rest).lo;
  if (low == kNegInf || low == kPosInf) return std::nullopt;
  if (c > 0) return Interval{-floor_div(low, c), kPosInf};
  return Interval{kNegInf, floor_div(low, -c)};
}

// b - a of a comparison of a and b; nothing for other expressions.
std::optional<Linear> gap(const Expr& e) {
  if (!is_compare(e->op) || e->args[0]->type != DType::kI64) return std::nullopt;
  return add(linearize(e->args[1]), linearize(e->args[0]), -1);
}
std::optional<Linear> shifted(const std::optional<Linear>& form, int64_t factor, int64_t offset) {
  return form ? add({offset, {}}, *form, factor) : std::nullopt;
}

// The values of `var` for which a comparison is true whatever the other variables are.
std::optional<Interval> true_interval(const Expr& e, const VarPtr& var, const Ranges& ranges) {
  const std::optional<Linear> d = gap(e);
  if (e->op == Op::kLt || e->op == Op::kLe) {
    return nonnegative_interval(shifted(d, 1, e->op == Op::kLt ? -1 : 0), var, ranges);
  }
  if (e->op != Op::kEq) return std::nullopt;
  const auto from = nonnegative_interval(d, var, ranges);
  const auto to = nonnegative_interval(shifted(d, -1, 0), var, ranges);
  return from && to ? std::optional(intersect(*from, *to)) : std::nullopt;
}

// The longest run of values inside `whole` for which a comparison is decided, true or false.
Interval decided_interval(const Expr& e, const VarPtr& var, const Ranges& ranges, Interval whole) {
  const std::optional<Linear> d = gap(e);
  const bool ordered = e->op == Op::kLt || e->op == Op::kLe;
  const int64_t offset = e->op == Op::kLt || !ordered ? -1 : 0;
  Interval best = {0, -1};
  for (const auto& form : {shifted(d, 1, offset), shifted(d, -1, ordered ? -1 - offset : -1)}) {
    const std::optional<Interval> i = nonnegative_interval(form, var, ranges);
    if (!i) continue;
    const Interval inside = intersect(*i, whole);
    if (!inside.empty() && inside.hi - inside.lo > best.hi - best.lo) best = inside;
  }
  return best;
}

// The values of `var` for which a comparison may be true, of all the values of other variables.
Interval possible_interval(const Expr& e, const VarPtr& var, const Ranges& ranges) {
  const Interval any = {kNegInf, kPosInf};
  if (e->op != Op::kLt && e->op != Op::kLe) return any;
  const std::optional<Linear> form = shifted(gap(e), 1, e->op == Op::kLt ? -1 : 0);
  // The comparison is never true where the opposite form, less one, is not negative.
  const std::optional<Interval> never = nonnegative_interval(shifted(form, -1, -1), var, ranges);
  if (!never) return any;
  return never->lo == kNegInf ? Interval{never->hi + 1, kPosInf} : Interval{kNegInf, never->lo - 1};
}

bool is_function_of(const Expr& e, const VarPtr& var) {
  bool alone = true;
  visit(e, [&](const Expr& node) {
    alone &= node->op != Op::kLoad && (node->op != Op::kVar || node->var == var);
  });
  return alone;
}

// Returns the condition on a parallel loop's variable under which a "less" is true whatever the
// other variables are; nothing if it is always true, or never.
std::optional<Expr> tile_condition(const Expr& e, const VarPtr& var, const Ranges& ranges) {
  if (e->op != Op::kLt && e->op != Op::kLe) return std::nullopt;
  const std::optional<Linear> form = shifted(gap(e), 1, e->op == Op::kLt ? -1 : 0);
  if (!form) return std::nullopt;
  Linear tile{form->constant, {}}, rest;
  for (const auto& term : form->terms) {
    const bool is_of_tile = uses(term.first, var.get());
    if (is_of_tile && !is_function_of(term.first, var)) return std::nullopt;
    (is_of_tile ? tile : rest).terms.push_back(term);
  }
  const int64_t low = ranges.of(rest).lo;
  if (tile.terms.empty() || low == kNegInf) return std::nullopt;
  tile.constant += low;
  const Interval all = ranges.of(tile);
  if (all.lo >= 0 || all.hi < 0) return std::nullopt;
  return less_equal(constant(0), to_expr(tile));
}

// The one value that an atom has where such a condition is false, with the atom; nothing if it may
// have several.
std::optional<std::pair<Expr, Expr>> value_in_rest(const Expr& condition, const Ranges& ranges) {
  const Linear form = linearize(condition->args[1]);
  if (form.terms.size() != 1) return std::nullopt;
  const auto& [e, c] = form.terms[0];
  const int64_t at_least = floor_div(form.constant, std::abs(c)) + 1;
  const Interval known = ranges.of(e);
  const Interval rest = c < 0 ? Interval{at_least, kPosInf} : Interval{kNegInf, -at_least};
  const Interval left = intersect(known, rest);
  if (!left.is_point()) return std::nullopt;
  return std::pair{e, constant(left.lo)};
}

// Every node of the expressions in these statements, while `ranges` knows the loops around it.
template <typename F>
void visit_nodes(const std::vector<Stmt>& body, Ranges& ranges, const F& f) {
  for (const Stmt& s : body) {
    for_each_expr(*s, [&](const Expr& e) { visit(e, f); });
    const auto mark = ranges.mark();
    if (s->kind == StmtKind::kFor) ranges.bind_loop(s->var, s->min, s->extent);
    visit_nodes(s->body, ranges, f);
    ranges.reset(mark);
  }
}

// From the first to the last of the values of `var` for which statements may store something.
Interval storing_interval(const std::vector<Stmt>& body, const VarPtr& var, Ranges& ranges,
                          Interval whole) {
  Interval all = {0, -1};
  for (const Stmt& s : body) {
    if (s->kind == StmtKind::kPrefetch) continue;
    Interval one = whole;
    if (!s->body.empty()) {
      const auto mark = ranges.mark();
      if (s->kind == StmtKind::kFor) ranges.bind_loop(s->var, s->min, s->extent);
      one = storing_interval(s->body, var, ranges, whole);
      ranges.reset(mark);
    }
    if (s->kind == StmtKind::kIf) {
      for (const Expr& part : conjuncts(s->condition))
        one = intersect(one, possible_interval(part, var, ranges));
    }
    if (one.empty()) continue;
    all = all.empty() ? one : Interval{std::min(all.lo, one.lo), std::max(all.hi, one.hi)};
  }
  return all;
}

// True if a comparison is between `var` and constants: only then is its true interval all of it.
// (floormod(t, 4) has a range even where nothing is known of t.)
bool depends_on_nothing_else(const Expr& e, const VarPtr& var) {
  const std::optional<Linear> d = gap(e);
  return d && without(*d, variable(var)).terms.empty();
}

// Moves guards on the loop's own variable into its range, those of the loops inside it first.
Stmt tightened(const Stmt& s) {
  const bool is_candidate = s->kind == StmtKind::kFor && !is_thread_loop(s->for_kind) &&
                            s->body.size() == 1 && s->body[0]->kind == StmtKind::kIf &&
                            is_const_int(s->min) && is_const_int(s->extent);
  if (!is_candidate) return s;
  const StmtNode& guard = *s->body[0];
  const bool keeps_start = s->for_kind == ForKind::kParallel;
  const int64_t begin = s->min->int_value;
  Interval range = {begin, begin + s->extent->int_value - 1};
  std::vector<Expr> rest;
  for (const Expr& part : conjuncts(guard.condition)) {
    std::optional<Interval> i;
    if (depends_on_nothing_else(part, s->var)) i = true_interval(part, s->var, Ranges());
    if (i && !(keeps_start && i->lo > begin)) {
      range = intersect(range, *i);
    } else {
      rest.push_back(part);
    }
  }
  if (range.empty()) return make_block({});
  std::vector<Stmt> inner = guard.body;
  if (!rest.empty()) inner = {make_if(conjunction(rest), std::move(inner))};
  return make_for(s->var, constant(range.lo), constant(range.hi - range.lo + 1), s->for_kind,
                  std::move(inner), s->peel);
}
Stmt tighten(const Stmt& s) { return rewrite_stmts(s, tightened); }

// Returns whether statements test, for each point of an unrolled tile, if `var` leaves room for it.
// `units` are the variables of the tile's loops around them.
bool tests_points(const StmtNode& s, const VarPtr& var, std::vector<const Var*>& units) {
  if (s.kind == StmtKind::kIf && uses(s.condition, var.get()) &&
      std::any_of(units.begin(), units.end(),
                  [&](const Var* unit) { return uses(s.condition, unit); }))
    return true;
  const bool is_unit = s.kind == StmtKind::kFor && s.for_kind == ForKind::kUnrolled;
  if (is_unit) units.push_back(s.var.get());
  const bool found = std::any_of(s.body.begin(), s.body.end(), [&](const Stmt& child) {
    return tests_points(*child, var, units);
  });
  if (is_unit) units.pop_back();
  return found;
}

// Returns whether a serial loop inside of this one makes such tests in each iteration, as the sum
// of a register tile does that does not divide its block.
bool is_tested_in_loops(const StmtNode& loop) {
  bool found = false;
  for (const Stmt& child : loop.body) {
    for_each_stmt(*child, [&](const StmtNode& s) {
      std::vector<const Var*> units;
      found = found || (s.kind == StmtKind::kFor && s.for_kind == ForKind::kSerial &&
                        tests_points(s, loop.var, units));
    });
  }
  return found;
}

class Partitioner {
 public:
  Partitioner(int64_t statements, const PartitionOptions& options)
      : options_(options), statements_(statements) {}

  Stmt statement(const Stmt& s) {
    if (s->body.empty()) return s;
    const bool may_split = s->kind == StmtKind::kFor && !is_thread_loop(s->for_kind) &&
                           (s->peel || (s->for_kind == ForKind::kSerial && is_tested_in_loops(*s)));
    if (may_split) {
      if (s->for_kind == ForKind::kParallel) return with_tests(*s);
      if (const std::vector<Stmt> parts = split(*s); !parts.empty()) return make_block(parts);
    }
    const auto mark = ranges_.mark();
    if (s->kind == StmtKind::kFor) ranges_.bind_loop(s->var, s->min, s->extent);
    if (s->kind == StmtKind::kIf) ranges_.assume(s->condition);
    Stmt made = map_body(s, [&](const Stmt& child) { return statement(child); });
    ranges_.reset(mark);
    return made;
  }

 private:
  // A parallel loop whose tiles without any tests are told from the others.
  Stmt with_tests(const StmtNode& loop) {
    const auto mark = ranges_.mark();
    ranges_.bind_loop(loop.var, loop.min, loop.extent);
    std::vector<Expr> conditions;
    visit_nodes(loop.body, ranges_, [&](const Expr& node) {
      const std::optional<Expr> found = tile_condition(node, loop.var, ranges_);
      const auto same = [&](const Expr& other) { return compare(other, *found) == 0; };
      if (found && std::none_of(conditions.begin(), conditions.end(), same))
        conditions.push_back(*found);
    });
    const int64_t added = count_statements(loop.body) + 2;
    std::vector<Stmt> body;
    if (conditions.empty() || statements_ + added > options_.max_statements) {
      for (const Stmt& child : loop.body) body.push_back(statement(child));
    } else {
      statements_ += added;
      const Expr whole = conjunction(conditions);
      for (const Expr& condition : {whole, make(Op::kNot, {whole})}) {
        const auto inside = ranges_.mark();
        ranges_.assume(condition);
        Stmt part = make_block(loop.body);
        if (const auto last = condition != whole && conditions.size() == 1
                                  ? value_in_rest(conditions[0], ranges_)
                                  : std::nullopt) {
          part = rewrite_exprs(part, [&](const Expr& e) {
            // Other variables may have the same name.
            const bool same = compare(e, last->first) == 0 && is_function_of(e, loop.var);
            return same ? last->second : nullptr;
          });
        }
        part = simplify(part, ranges_);
        body.push_back(make_if(condition, {statement(part)}));
        ranges_.reset(inside);
      }
    }
    ranges_.reset(mark);
    return make_for(loop.var, loop.min, loop.extent, loop.for_kind, std::move(body));
  }

  // Empty if the loop stays whole.
  std::vector<Stmt> split(const StmtNode& loop) {
    const Interval extent = ranges_.of(loop.extent);  // a point, but for loops that end early
    if (!is_const_int(loop.min) || extent.hi == kPosInf || extent.hi <= 0) return {};
    const int64_t begin = loop.min->int_value;
    const Interval whole = {begin, begin + extent.hi - 1};
    const Interval used = used_part(loop, whole);
    const std::optional<Interval> found = main_part(loop, used);
    if (!found && used == whole) return {};
    const Interval main = found.value_or(used);
    const int64_t size = count_statements(loop.body);
    const int64_t copies = (main.lo > used.lo) + (main.hi < used.hi);
    const int64_t added = copies * (size + 1);
    if (statements_ + added > options_.max_statements) return {};
    statements_ += added;
    std::vector<Stmt> parts;
    const auto part = [&](int64_t from, int64_t to) {
      if (from >= to) return;
      Expr length = constant(to - from);
      if (!is_const_int(loop.extent)) length = min(length, loop.extent - (from - begin));
      const Stmt whole = make_for(loop.var, constant(from), length, loop.for_kind, loop.body);
      // Tight inner loops first: their ranges decide where conditions are true.
      const Stmt tight = tighten(hoist_guards(simplify(whole, ranges_)));
      parts.push_back(statement(simplify(tight, ranges_)));
    };
    part(used.lo, main.lo);
    part(main.lo, main.hi + 1);
    part(main.hi + 1, used.hi + 1);
    return parts;
  }

  // Without iterations that store nothing, at the start and at the end; all, if none does.
  Interval used_part(const StmtNode& loop, Interval whole) {
    const auto mark = ranges_.mark();
    ranges_.bind(loop.var, whole);
    const Interval stores = storing_interval(loop.body, loop.var, ranges_, whole);
    ranges_.reset(mark);
    return stores.empty() ? whole : stores;
  }

  // Where as many conditions as possible are decided at once, the longest first; nothing if that
  // is everywhere.
  std::optional<Interval> main_part(const StmtNode& loop, Interval whole) {
    const auto mark = ranges_.mark();
    ranges_.bind(loop.var, whole);
    std::vector<Interval> sorted;
    visit_nodes(loop.body, ranges_, [&](const Expr& node) {
      const Interval i = decided_interval(node, loop.var, ranges_, whole);
      if (!i.empty()) sorted.push_back(i);
    });
    ranges_.reset(mark);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](Interval a, Interval b) { return a.hi - a.lo > b.hi - b.lo; });
    Interval main = whole;
    for (const Interval& i : sorted) {
      const Interval both = intersect(main, i);
      if (!both.empty()) main = both;
    }
    if (main == whole) return std::nullopt;
    return main;
  }

  PartitionOptions options_;
  Ranges ranges_;
  int64_t statements_;
};

}  // namespace

Program partition_loops(Program program, const PartitionOptions& options) {
  program = map_all_phases(hoist_guards(simplify(std::move(program))),
                           [](const Stmt& s) { return simplify(tighten(s), Ranges()); });
  int64_t statements = 0;
  for (const Phase& phase : program.phases)
    statements += phase.body ? count_statements({phase.body}) : 0;
  return map_all_phases(std::move(program), [&](const Stmt& s) {
    Stmt body = Partitioner(statements, options).statement(s);
    for (int i = 0; i < 2; ++i)  // a tighter loop may free another guard
      body = simplify(tighten(hoist_guards(simplify(body, Ranges()))), Ranges());
    return body;
  });
}

}  // namespace hone::ir
