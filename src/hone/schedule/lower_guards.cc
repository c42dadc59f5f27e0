#include "hone/schedule/lower_guards.h"

#include <algorithm>

#include "hone/compute/stage_body.h"
#include "hone/schedule/bilinear.h"
#include "hone/schedule/reader_limit.h"

namespace hone::schedule {
namespace {

using ir::Expr;
using ir::Op;

// Points of register tiles, copies of their code counted: of more, compile time and the instruction
// cache suffer.
constexpr int64_t kMostPoints = 1024;

// A constant, or a copy of one: what is computed of finite constants may be infinite.
bool holds_constant(const State& state, const ir::BufferPtr& buffer) {
  if (const ir::Param* param = state.find_param(buffer)) return param->role == ir::Role::kConstant;
  return std::any_of(state.stages.begin(), state.stages.end(), [&](const StageState& stage) {
    if (stage.info->stage.is_extern() || stage.buffer() != buffer) return false;
    const Expr& value = stage.info->stage.outputs[0].value;
    const Expr& copied = value->op == Op::kCast ? value->args[0] : value;
    const ir::Param* param = copied->op == Op::kLoad ? state.find_param(copied->buffer) : nullptr;
    return param && param->role == ir::Role::kConstant;
  });
}

class Guards {
 public:
  Guards(const State& state, const Bounds& bounds, const IndexMap& index, int s)
      : state_(state),
        stage_(state.stages[s]),
        all_(bounds),
        bounds_(bounds.stages[s]),
        loops_(bounds.stages[s].loops),
        index_(index),
        s_(s) {}

  StageGuards make() {
    for (size_t a = 0; a < stage_.info->axes.size(); ++a) add_axis(static_cast<int>(a));
    for (const int loop : bounds_.overlapping) {
      add(ir::less(index_.loop_value(s_, loop), ir::constant(loops_[loop].extent)),
          loops_[loop].last_leaf + 1, stage_.loops[loop].reduce);
    }
    const compute::WhereSplit where = compute::split_where(stage_.info->stage);
    add_where(where.point, false);
    add_where(where.update, true);
    if (bounds_.slides) add_slide();
    add_zeros();
    return {std::move(guards_), std::move(peeled_)};
  }

 private:
  // The loops over threads of a nest are one: a test stands inside all of them.
  void add(Expr condition, int level, bool update_only) {
    const auto is_thread = [&](int position) {
      return is_thread_loop(stage_.loops[stage_.order[position]].annotation);
    };
    const int loops = static_cast<int>(stage_.order.size());
    while (level > 0 && level < loops && is_thread(level - 1) && is_thread(level)) ++level;
    guards_.push_back({std::move(condition), level, update_only});
  }

  // Returns how many of the stage's own loops must be open for the terms of a linear form.
  [[nodiscard]] int level_of(const Linear& linear) const {
    int level = 0;
    for (const Term& term : linear) {
      if (term.stage == s_) level = std::max(level, loops_[term.loop].last_leaf + 1);
    }
    return level;
  }

  void add_axis(int a) {
    const AxisBounds& axis = bounds_.axes[a];
    const int level = level_of(axis.own);
    const bool reduce = a >= stage_.info->num_spatial();
    const Expr value = index_.axis_value(s_, a);
    if (axis.guard_low) add(ir::less_equal(ir::constant(0), value), level, reduce);
    if (axis.guard_high) {
      const std::optional<ReaderLimit> limit = reader_limit(state_, all_, s_, a);
      add(limit ? ir::less(index_.value(limit->value), ir::constant(limit->end))
                : ir::less(value, ir::constant(stage_.info->axes[a].extent)),
          level, reduce);
    }
    if (axis.guard_region)
      add(ir::less(index_.own_value(s_, a), ir::constant(axis.extent)), level, reduce);
  }

  void add_where(const Expr& condition, bool update_only) {
    if (!condition) return;
    const StageInfo& info = *stage_.info;
    int level = 0;
    ir::visit(condition, [&](const Expr& e) {
      for (size_t a = 0; a < info.axes.size(); ++a) {
        if (e->op == Op::kVar && e->var == info.axes[a].var)
          level = std::max(level, level_of(bounds_.axes[a].own));
      }
    });
    add(ir::substitute(condition, index_.axis_values(s_)), level, update_only);
  }

  // Only what the previous iteration of the loop around the stage did not compute.
  void add_slide() {
    const AxisBounds& axis = bounds_.axes[bounds_.slide_axis];
    const Expr around = ir::variable(index_.variable(stage_.compute.stage, stage_.compute.loop));
    const Expr first = ir::make(Op::kEq, {around, ir::constant(0)});
    const Expr fresh = ir::less_equal(ir::constant(axis.extent - bounds_.slide_stride),
                                      index_.own_value(s_, bounds_.slide_axis));
    add(ir::make(Op::kOr, {first, fresh}), level_of(axis.own), false);
  }

  // Products with the zeros around an input are left out where a loop of the sum runs past them
  // around others: what it skips is worth a test, and no register tile is torn. A tile inside of
  // that loop is left out where all its points read zeros, as with a large dilation; or in part, if
  // each tap decides which of its points do.
  void add_zeros() {
    const std::optional<Factors> factors = factors_of(state_, *stage_.info);
    if (!factors || factors->data->op != Op::kLoad) return;
    const ir::Param* param = state_.find_param(factors->data->buffer);
    if (!param || param->zeros.empty() || !holds_constant(state_, factors->weight_access.buffer))
      return;
    const std::vector<int64_t>&shape = param->buffer->shape, &zeros = param->zeros;
    for (size_t d = 0; d < shape.size(); ++d) {
      const compute::AffineRow& row = factors->data_access.index[d];
      const int64_t first = zeros[d], last = shape[d] - zeros[shape.size() + d] - 1;
      add_zeros_in_tile(row, first, last);
      const auto [all, of_sum] = levels_of(row);
      if (of_sum == 0) continue;
      const int level = is_outer_loop(all - 1) ? all : of_sum;
      if (!is_outer_loop(level - 1)) continue;
      int64_t least = row.constant, most = row.constant;
      bool fits = true;
      int64_t below = 0, above = 0;  // the loops inside move the index by so much at most
      Expr index = ir::constant(row.constant);
      for (size_t a = 0; a < row.coef.size(); ++a) {
        const int64_t coef = row.coef[a];
        if (coef == 0) continue;
        (coef > 0 ? most : least) += coef * (stage_.info->axes[a].extent - 1);
        Linear outer = bounds_.axes[a].min;
        outer.constant += bounds_.axes[a].own.constant;
        for (const Term& term : bounds_.axes[a].own) {
          if (term.stage == s_ && loops_[term.loop].last_leaf >= level) {
            const int64_t moved = coef * term.coef * (loops_[term.loop].extent - 1);
            (moved > 0 ? above : below) += moved;
          } else {
            fits = fits && outer.add(term.stage, term.loop, term.coef);
          }
        }
        index = index + index_.value(outer) * coef;
      }
      if (!fits) continue;  // no room for so many loops
      if (least - below + above < first)
        add(ir::less_equal(ir::constant(first - above), index), level, true);
      if (most - above + below > last)
        add(ir::less_equal(index, ir::constant(last - below)), level, true);
    }
  }

  // Where a register tile has all points of a dimension, its first and last tap read zeros for some
  // of them, the same ones in every tile: these taps get code of their own, without those points.
  void add_zeros_in_tile(const compute::AffineRow& row, int64_t first, int64_t last) {
    int tap = -1, level = 0;
    // Coefficient and bounds of the index without the tap.
    int64_t step = 0, low = row.constant, high = row.constant;
    for (size_t a = 0; a < row.coef.size(); ++a) {
      const int64_t coef = row.coef[a];
      if (coef == 0) continue;
      const AxisBounds& axis = bounds_.axes[a];
      for (const Term& term : axis.min) {
        if (extent_of(term) > 1) return;  // other points in other tiles
      }
      low += coef * (axis.min.constant + axis.own.constant);
      high += coef * (axis.min.constant + axis.own.constant);
      for (const Term& term : axis.own) {
        const int64_t moved = coef * term.coef * (extent_of(term) - 1);
        if (moved == 0) continue;
        const int position = term.stage == s_ ? stage_.find_leaf(term.loop) : -1;
        if (position < 0) return;
        const Loop& loop = stage_.loops[term.loop];
        if (loop.annotation == Annotation::kUnroll) {
          level = std::max(level, position + 1);
          (moved > 0 ? high : low) += moved;
        } else if (loop.annotation == Annotation::kNone && loop.reduce && tap < 0) {
          tap = term.loop;
          step = coef * term.coef;
        } else {
          return;
        }
      }
    }
    if (tap < 0 || stage_.find_leaf(tap) >= level) return;
    // Taps that read zeros for some points; of more than one at an end, the code would have tests.
    int64_t at_begin = 0, at_end = 0;
    const int64_t taps = loops_[tap].extent;
    for (int64_t t = 0; t < taps; ++t) {
      if (low + t * step >= first && high + t * step <= last) continue;
      ++(2 * t < taps ? at_begin : at_end);
    }
    const int64_t copies = copies_ * (1 + at_begin + at_end);
    if (std::max(at_begin, at_end) != 1 || copies * unrolled_inside(tap) > kMostPoints) return;
    copies_ = copies;
    peeled_.push_back(tap);
    Expr index = ir::constant(row.constant);
    for (size_t a = 0; a < row.coef.size(); ++a) {
      if (row.coef[a] != 0)
        index = index + index_.axis_value(s_, static_cast<int>(a)) * row.coef[a];
    }
    if (at_begin + at_end == 2 || (step > 0) == (at_begin == 1))
      add(ir::less_equal(ir::constant(first), index), level, true);
    if (at_begin + at_end == 2 || (step > 0) == (at_end == 1))
      add(ir::less_equal(index, ir::constant(last)), level, true);
  }

  [[nodiscard]] int64_t extent_of(const Term& term) const {
    return all_.stages[term.stage].loops[term.loop].extent;
  }

  // Returns how many points the unrolled loops inside a loop have.
  [[nodiscard]] int64_t unrolled_inside(int leaf) const {
    int64_t points = 1;
    for (size_t i = static_cast<size_t>(stage_.find_leaf(leaf)); i < stage_.order.size(); ++i) {
      if (stage_.loops[stage_.order[i]].annotation == Annotation::kUnroll)
        points *= loops_[stage_.order[i]].extent;
    }
    return points;
  }

  // Returns how many of the stage's own loops an index needs, and how many the loops of its sum
  // alone need, which is 0 if it has none.
  [[nodiscard]] std::pair<int, int> levels_of(const compute::AffineRow& row) const {
    int all = 0, of_sum = 0;
    for (size_t a = 0; a < row.coef.size(); ++a) {
      if (row.coef[a] == 0) continue;
      const int level = level_of(bounds_.axes[a].own);  // 0 of an axis of one point
      all = std::max(all, level);
      if (a >= static_cast<size_t>(stage_.info->num_spatial())) of_sum = std::max(of_sum, level);
    }
    return {all, of_sum};
  }

  // Returns whether the loops up to this one are serial, and another serial one is inside them.
  [[nodiscard]] bool is_outer_loop(int position) const {
    const auto steps = [&](int leaf) {
      const Annotation annotation = stage_.loops[leaf].annotation;
      return annotation == Annotation::kNone || annotation == Annotation::kParallel;
    };
    const auto begin = stage_.order.begin(), inner = begin + position + 1;
    return position >= 0 && std::all_of(begin, inner, steps) &&
           std::any_of(inner, stage_.order.end(),
                       [&](int leaf) { return steps(leaf) && loops_[leaf].extent > 1; });
  }

  const State& state_;
  const StageState& stage_;
  const Bounds& all_;
  const StageBounds& bounds_;
  const std::vector<LoopBounds>& loops_;
  const IndexMap& index_;
  int s_;
  std::vector<Guard> guards_;
  std::vector<int> peeled_;
  int64_t copies_ = 1;  // copies of the register tile's code
};

}  // namespace

StageGuards guards_of(const State& state, const Bounds& bounds, const IndexMap& index, int s) {
  return Guards(state, bounds, index, s).make();
}

Expr guard_at(const std::vector<Guard>& guards, int level, bool initial) {
  Expr condition;
  for (const Guard& guard : guards) {
    if (guard.level != level || (guard.update_only && initial)) continue;
    condition = condition ? ir::logical_and(condition, guard.condition) : guard.condition;
  }
  return condition;
}

}  // namespace hone::schedule
