#include "hone/schedule/lower_guards.h"

#include <algorithm>

#include "hone/compute/stage_body.h"

namespace hone::schedule {
namespace {

using ir::Expr;
using ir::Op;

class Guards {
 public:
  Guards(const State& state, const Bounds& bounds, const IndexMap& index, int s)
      : stage_(state.stages[s]),
        bounds_(bounds.stages[s]),
        loops_(bounds.stages[s].loops),
        index_(index),
        s_(s) {}

  std::vector<Guard> make() {
    for (size_t a = 0; a < stage_.info->axes.size(); ++a) add_axis(static_cast<int>(a));
    for (const int loop : bounds_.overlapping) {
      add(ir::less(index_.loop_value(s_, loop), ir::constant(loops_[loop].extent)),
          loops_[loop].last_leaf + 1, stage_.loops[loop].reduce);
    }
    const compute::WhereSplit where = compute::split_where(stage_.info->stage);
    add_where(where.point, false);
    add_where(where.update, true);
    if (bounds_.slides) add_slide();
    return std::move(guards_);
  }

 private:
  void add(Expr condition, int level, bool update_only) {
    guards_.push_back({std::move(condition), level, update_only});
  }

  // How many of the stage's own loops a linear form's terms need.
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
    if (axis.guard_high)
      add(ir::less(value, ir::constant(stage_.info->axes[a].extent)), level, reduce);
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

  const StageState& stage_;
  const StageBounds& bounds_;
  const std::vector<LoopBounds>& loops_;
  const IndexMap& index_;
  int s_;
  std::vector<Guard> guards_;
};

}  // namespace

std::vector<Guard> guards_of(const State& state, const Bounds& bounds, const IndexMap& index,
                             int s) {
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
