#include "hone/ir/passes/limit_loops.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "hone/ir/passes/loop_digits.h"
#include "hone/ir/passes/renumber_tiles.h"
#include "hone/ir/scan_loop.h"
#include "hone/ir/simplify.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

int64_t saturated_product(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

// The number of stores that statements run.
int64_t count_stores(const StmtNode& s, Ranges& ranges) {
  if (s.kind == StmtKind::kStore) return 1;
  const auto mark = ranges.mark();
  int64_t times = 1, sum = 0;
  if (s.kind == StmtKind::kFor) {
    times = std::max<int64_t>(ranges.of(s.extent).hi, 0);
    ranges.bind_loop(s.var, s.min, s.extent);
  }
  for (const Stmt& child : s.body) __builtin_add_overflow(sum, count_stores(*child, ranges), &sum);
  ranges.reset(mark);
  return saturated_product(times, sum);
}

class LoopLimiter {
 public:
  LoopLimiter(const SizeLimits& limits, BufferPtr sizes, const LimitOptions& options)
      : limits_(limits), sizes_(std::move(sizes)), options_(options) {}

  Stmt statement(const Stmt& s) {
    if (s->body.empty()) return s;
    if (s->kind == StmtKind::kFor && s->for_kind == ForKind::kVectorized)
      return find_scan(*s) ? scan(s) : vectorized(s);
    const auto mark = ranges_.mark();
    if (s->kind == StmtKind::kFor) ranges_.bind_loop(s->var, s->min, s->extent);
    if (s->kind == StmtKind::kIf) ranges_.assume(s->condition);
    const std::vector<Need> needed = needs_of(*s);
    if (!needed.empty()) {
      ranges_.reset(mark);
      if (const std::optional<Stmt> cut = cut_into_digits(*s, needed, ranges_))
        return statement(noted(*s, *cut));
      ranges_.bind_loop(s->var, s->min, s->extent);
    }
    Stmt made = map_body(s, [&](const Stmt& child) { return statement(child); });
    for (const Need& need : needed) made = limited(made, need);
    const std::optional<InnerDigit> digit = first_digit(*s, needed);
    ranges_.reset(mark);
    return digit ? renumbered(*made, *digit, sizes_, ranges_) : made;
  }
  // Says which tiles of a phase compute something; the phase is as it was before.
  TileLimit tiles_of(const Stmt& phase) {
    TileLimit found;
    if (phase->kind != StmtKind::kFor || phase->for_kind != ForKind::kParallel) return found;
    ranges_.bind_loop(phase->var, phase->min, phase->extent);
    const std::vector<Need> needed = needs_of(*phase);
    found = first_limit(*phase, needed);
    if (const std::optional<InnerDigit> digit = first_digit(*phase, needed))
      found = {digit->form, digit->divisor, digit->rows};
    ranges_.reset({0, 0});
    return found;
  }
  [[nodiscard]] bool changed() const { return changed_; }

 private:
  // A vectorized loop ends early by whole chunks of lanes if a run may need its first ones only.
  Stmt vectorized(const Stmt& loop) {
    const std::optional<Stmt> cut = cut_into_chunks(*loop, ranges_);
    if (!cut) return loop;
    const auto mark = ranges_.mark();
    ranges_.bind_loop(loop->var, loop->min, loop->extent);
    const bool may_end = !needs_of(*loop).empty();
    ranges_.reset(mark);
    return may_end ? statement(noted(*loop, *cut)) : loop;
  }

  // A scan ends early by whole chunks, too; its limits are of its own iterations (SizeLimits).
  Stmt scan(const Stmt& loop) {
    const std::optional<Stmt> cut = cut_into_chunks(*loop, ranges_);
    if (!cut) return loop;
    const auto mark = ranges_.mark();
    ranges_.bind_loop(loop->var, loop->min, loop->extent);
    const std::vector<Need> needed = needs_of(*loop);
    ranges_.reset(mark);
    if (needed.empty()) return loop;
    Stmt chunks = (*cut)->kind == StmtKind::kBlock ? (*cut)->body[0] : *cut;
    Stmt rest = (*cut)->kind == StmtKind::kBlock ? (*cut)->body[1] : nullptr;
    const Expr lanes = chunks->body[0]->extent, end = chunks->extent * lanes;
    const Expr first = variable(chunks->var) * lanes;
    for (const Need& need : needed) {
      const auto from = [&](const Expr& at) {
        return Need{need.form, linearize(substitute(to_expr(need.at), {{loop->var, at}})),
                    need.unit};
      };
      chunks = limited(chunks, from(first));
      if (rest) rest = make_if(holds(from(end)), {rest});
    }
    return rest ? make_block({chunks, rest}) : chunks;
  }

  [[nodiscard]] Expr holds(const Need& need) const {
    return less(to_expr(need.at), load(sizes_, {constant(need.form)}) * need.unit);
  }

  // Notes that the loops that a loop was cut into are made to end early.
  Stmt noted(const StmtNode& loop, const Stmt& cut) {
    changed_ = true;
    std::unordered_set<const Var*> inside;
    for_each_stmt(loop, [&](const StmtNode& part) { inside.insert(part.var.get()); });
    for_each_stmt(*cut, [&](const StmtNode& part) {
      if (part.kind == StmtKind::kFor && !inside.contains(part.var.get()))
        cut_.insert(part.var.get());
    });
    return cut;
  }

  // What a loop's statements store outside of what they allocate.
  struct Effects {
    std::vector<const Var*> inner;
    std::vector<const Buffer*> local;
    std::optional<Need> need;
    bool failed = false;
  };

  // Returns, for each size, when an iteration of a loop is needed, if that depends on the loop.
  std::vector<Need> needs_of(const StmtNode& loop) {
    std::vector<Need> all;
    const bool may_end = loop.kind == StmtKind::kFor && (loop.for_kind == ForKind::kSerial ||
                                                         loop.for_kind == ForKind::kParallel ||
                                                         loop.for_kind == ForKind::kVectorized);
    if (!may_end) return all;
    const Worth worth = worth_of(loop);
    if (worth == Worth::kNone) return all;
    for (const int form : limits_.forms()) {
      Effects effects;
      for (const Stmt& child : loop.body) collect(*child, loop, form, effects);
      if (effects.failed || !effects.need || !depends(effects.need->at, loop.var)) continue;
      // A size is 1 or more, or few: what a run of none does not need is computed.
      if (ranges_.of(effects.need->at).hi < effects.need->unit) continue;
      if (worth == Worth::kKnownEnd && !has_known_end(loop, *effects.need)) continue;
      all.push_back(*std::move(effects.need));
    }
    return all;
  }

  // Which ends of a loop save more than they cost.
  enum class Worth : uint8_t { kNone, kKnownEnd, kAny };
  Worth worth_of(const StmtNode& loop) {
    if (loop.for_kind != ForKind::kSerial || cut_.contains(loop.var.get())) return Worth::kAny;
    int64_t stores = 0;
    for (const Stmt& child : loop.body)
      stores += std::min(count_stores(*child, ranges_), options_.min_stores_of_all);
    const int64_t all = saturated_product(stores, ranges_.of(loop.extent).hi);
    if (stores >= options_.min_stores || all >= options_.min_stores_of_all) return Worth::kAny;
    return all >= options_.min_stores_of_known_end ? Worth::kKnownEnd : Worth::kNone;
  }

  // Returns whether a loop ends where the size alone says, which is found once for all times that
  // the loop runs.
  static bool has_known_end(const StmtNode& loop, const Need& need) {
    return need.at.terms.size() == 1 && need.at.coefficient(loop.var) > 0;
  }

  void collect(const StmtNode& s, const StmtNode& loop, int form, Effects& effects) {
    if (effects.failed || s.kind == StmtKind::kPrefetch) return;
    if (s.kind == StmtKind::kStore) {
      if (std::count(effects.local.begin(), effects.local.end(), s.buffer.get()) == 0)
        add_store(s, loop, form, effects);
      return;
    }
    const bool is_known = s.kind == StmtKind::kFor || s.kind == StmtKind::kIf ||
                          s.kind == StmtKind::kBlock || s.kind == StmtKind::kAlloc;
    if (!is_known) {
      effects.failed = true;
      return;
    }
    const auto mark = ranges_.mark();
    if (s.kind == StmtKind::kFor) {
      ranges_.bind_loop(s.var, s.min, s.extent);
      effects.inner.push_back(s.var.get());
    }
    if (s.kind == StmtKind::kIf) ranges_.assume(s.condition);
    if (s.kind == StmtKind::kAlloc) effects.local.push_back(s.buffer.get());
    for (const Stmt& child : s.body) collect(*child, loop, form, effects);
    if (s.kind == StmtKind::kAlloc) effects.local.pop_back();
    if (s.kind == StmtKind::kFor) effects.inner.pop_back();
    ranges_.reset(mark);
  }

  void add_store(const StmtNode& store, const StmtNode& loop, int form, Effects& effects) {
    const auto is_inner = [&](const Var* var) {
      return std::count(effects.inner.begin(), effects.inner.end(), var) > 0;
    };
    for (const Need& need : limits_.needs(store, ranges_)) {
      if (need.form != form) continue;
      auto least = bound_of(need.at, is_inner, ranges_);
      if (!least || !depends(*least, loop.var)) continue;
      Need one{form, *std::move(least), need.unit};
      if (effects.need) {
        effects.failed = !join(*effects.need, std::move(one));
      } else {
        effects.need = std::move(one);
      }
      return;
    }
    effects.failed = true;
  }

  // Makes `all` hold where it or `one` does.
  bool join(Need& all, Need one) const {
    const int64_t unit = std::lcm(all.unit, one.unit);
    const auto a = scale(all.at, unit / all.unit), b = scale(one.at, unit / one.unit);
    const auto gap = a && b ? add(*b, *a, -1) : std::nullopt;
    const auto back = gap ? scale(*gap, -1) : std::nullopt;
    if (!back) return false;
    all.unit = unit;
    if (ranges_.proves_nonnegative(*gap)) {
      all.at = *a;
    } else if (ranges_.proves_nonnegative(*back)) {
      all.at = *b;
    } else {
      all.at = linearize(min(to_expr(*a), to_expr(*b)));
    }
    return true;
  }

  Stmt limited(const Stmt& loop, const Need& need) {
    changed_ = true;
    const Expr end = load(sizes_, {constant(need.form)}) * need.unit;
    const Linear rest = without(need.at, variable(loop->var));
    const int64_t step = need.at.coefficient(loop->var);
    if (loop->for_kind == ForKind::kSerial && step > 0 && !depends(rest, loop->var)) {
      Expr count = floordiv(end - to_expr(rest) + (step - 1), step);
      if (!is_const_int(loop->min, 0)) count = count - loop->min;
      count = min(loop->extent, max(constant(0), simplify(count, ranges_)));
      return make_for(loop->var, loop->min, count, loop->for_kind, loop->body, loop->peel);
    }
    Expr condition = holds(need);
    std::vector<Stmt> body = loop->body;
    if (body.size() == 1 && body[0]->kind == StmtKind::kIf && has_load(body[0]->condition)) {
      condition = logical_and(condition, body[0]->condition);
      body = body[0]->body;
    }
    return with_body(*loop, {make_if(condition, std::move(body))});
  }

  [[nodiscard]] TileLimit first_limit(const StmtNode& loop, const std::vector<Need>& needed) const {
    for (const Need& need : needed) {
      if (need.form >= options_.first_of_kernel) continue;
      if (const TileLimit found = tile_limit(need, loop.var); found.form >= 0) return found;
    }
    return {};
  }

  // Returns the digit by which tiles are renumbered; nothing if they keep their numbers, as those
  // that a run needs are the first ones already.
  [[nodiscard]] std::optional<InnerDigit> first_digit(const StmtNode& loop,
                                                      const std::vector<Need>& needed) const {
    if (loop.for_kind != ForKind::kParallel || first_limit(loop, needed).form >= 0)
      return std::nullopt;
    for (const Need& need : needed) {
      if (need.form >= options_.first_of_kernel) continue;
      if (const std::optional<InnerDigit> digit = inner_digit(loop, need, ranges_)) return digit;
    }
    return std::nullopt;
  }

  // Nothing if the tiles that are needed are not the first ones.
  [[nodiscard]] TileLimit tile_limit(const Need& need, const VarPtr& tile) const {
    for (const auto& [e, c] : need.at.terms) {
      int64_t rows = 1;  // tiles per value of the atom
      if (e->op == Op::kFloorDiv && is_const_int(e->args[1]) && e->args[1]->int_value > 0 &&
          e->args[0]->op == Op::kVar) {
        rows = e->args[1]->int_value;
      } else if (e->op != Op::kVar) {
        continue;
      }
      const Var* var = e->op == Op::kVar ? e->var.get() : e->args[0]->var.get();
      if (var != tile.get() || c <= 0 || ranges_.of(without(need.at, e)).lo < 0) continue;
      const int64_t g = std::gcd(c, need.unit);
      return {need.form, c / g, need.unit / g * rows};
    }
    return {};
  }

  const SizeLimits& limits_;
  const BufferPtr sizes_;
  const LimitOptions& options_;
  Ranges ranges_;
  std::unordered_set<const Var*> cut_;  // of loops that were cut so that they end early
  bool changed_ = false;
};

}  // namespace

BufferPtr make_sizes(int64_t number) { return make_buffer("sizes", DType::kI64, {number}); }

LimitedProgram limit_loops(Program program, const std::vector<ParamLimit>& limits,
                           const BufferPtr& sizes, const LimitOptions& options) {
  LimitedProgram result;
  result.tiles.resize(program.phases.size());
  const SizeLimits found(program, limits, sizes);
  for (size_t i = 0; i < program.phases.size(); ++i) {
    Phase& phase = program.phases[i];
    if (phase.prepare || !phase.body) continue;
    LoopLimiter limiter(found, sizes, options);
    result.tiles[i] = limiter.tiles_of(phase.body);
    phase.body = limiter.statement(phase.body);
    result.changed = result.changed || limiter.changed();
  }
  const bool has_sizes = std::any_of(program.params.begin(), program.params.end(),
                                     [&](const Param& param) { return param.buffer == sizes; });
  if (result.changed && !has_sizes) program.params.push_back({sizes, Role::kInput});
  result.program = std::move(program);
  return result;
}

}  // namespace hone::ir
