#include "hone/schedule/legality.h"

#include <algorithm>

#include "hone/schedule/tensorize.h"
#include "hone/schedule/thread_legality.h"
#include "hone/schedule/visible_loops.h"

namespace hone::schedule {
namespace {

constexpr int64_t kMaxRegisterElements =
    8192;  // far beyond any register file; bounds the unrolling

class Legality {
 public:
  Legality(const State& state, const Bounds& bounds)
      : state_(state), bounds_(bounds), visible_(state, bounds) {}

  Status check_stage(int s) {
    const StageState& stage = state_.stages[s];
    HONE_RETURN_IF_ERROR(check_loop_kinds(stage));
    HONE_RETURN_IF_ERROR(check_tensorized(state_, s));
    const bool has_pad = std::any_of(stage.layout.begin(), stage.layout.end(),
                                     [](const LayoutDim& dim) { return dim.pad > 0; });
    if (has_pad && stage.scope != ir::Scope::kShared)
      return invalid("{} has padded rows, but is not in shared memory", stage.name());
    if (stage.scope == ir::Scope::kRegister) HONE_RETURN_IF_ERROR(check_registers(s));
    const StageBounds& bounds = bounds_.stages[s];
    const bool padded = std::any_of(bounds.axes.begin(), bounds.axes.end(),
                                    [](const AxisBounds& axis) { return axis.pad; });
    return padded ? check_padded_reads(s) : ok_status();
  }

 private:
  static Status check_loop_kinds(const StageState& stage) {
    for (size_t i = 0; i < stage.order.size(); ++i) {
      const Loop& loop = stage.loops[stage.order[i]];
      if (loop.annotation == Annotation::kVectorize && i + 1 < stage.order.size()) {
        return invalid("{}: vectorized loop {} is not the innermost", stage.name(), loop.name);
      }
      if (loop.annotation == Annotation::kParallel && i > 0) {
        return invalid("{}: parallel loop {} is not the outermost", stage.name(), loop.name);
      }
    }
    return ok_status();
  }

  bool is_fixed(int s, const Term& term) const {
    const std::vector<Loop>& loops = state_.stages[s].loops;
    int loop = term.loop;
    while (loops[loop].fused_into >= 0) loop = loops[loop].fused_into;
    const Annotation annotation = loops[loop].annotation;
    return annotation == Annotation::kUnroll || annotation == Annotation::kVectorize;
  }

  // Registers have no addresses: every loop that indexes them must be unrolled or vectorized.
  Status check_registers(int s) {
    const StageState& stage = state_.stages[s];
    int64_t elements = 1;
    for (const StoredDim& dim : bounds_.stages[s].storage[0]) elements *= dim.extent;
    if (elements > kMaxRegisterElements)
      return invalid("{} keeps {} elements in registers", stage.name(), elements);
    for (int a = 0; a < stage.info->num_spatial(); ++a) {
      for (const Term& term : bounds_.stages[s].axes[a].own) {
        if (is_fixed(s, term)) continue;
        return invalid("{} is in registers, but its loop {} is not unrolled", stage.name(),
                       stage.loops[term.loop].name);
      }
    }
    visible_.look_from(stage.store);
    for (int r = s + 1; r < static_cast<int>(state_.stages.size()); ++r) {
      for (const compute::Access& access : state_.stages[r].info->reads) {
        if (access.buffer != stage.buffer()) continue;
        for (const compute::AffineRow& row : access.index)
          HONE_RETURN_IF_ERROR(check_register_read(s, r, row));
      }
    }
    return ok_status();
  }

  Status check_register_read(int s, int reader, const compute::AffineRow& row) const {
    for (size_t a = 0; a < row.coef.size(); ++a) {
      if (row.coef[a] == 0) continue;
      for (const Term& term : bounds_.stages[reader].axes[a].own) {
        if (visible_.sees(term) || is_fixed(reader, term)) continue;
        const StageState& stage = state_.stages[reader];
        return invalid("{} is in registers, but {} reads it in loop {}, which is not unrolled",
                       state_.stages[s].name(), stage.name(), stage.loops[term.loop].name);
      }
    }
    return ok_status();
  }

  // Returns the values of an axis over all iterations; tests restrict them to the axis.
  std::pair<int64_t, int64_t> axis_range(int s, size_t a) const {
    const AxisBounds& axis = bounds_.stages[s].axes[a];
    auto [low, high] = range(axis.min, bounds_);
    high += axis.computed() - 1;
    if (axis.guard_low) low = std::max<int64_t>(low, 0);
    if (axis.guard_high) high = std::min(high, state_.stages[s].info->axes[a].extent - 1);
    return {low, high};
  }

  Status check_padded_reads(int s) const {
    for (const compute::Access& access : state_.stages[s].info->reads) {
      int writer = -1;
      for (int w = 0; w < s; ++w) {
        if (state_.stages[w].buffer() == access.buffer) writer = w;
      }
      if (writer >= 0 && state_.stages[writer].compute.kind == AttachKind::kAt) continue;
      if (!access.exact) continue;  // digits of a number are where they should be
      for (size_t d = 0; d < access.index.size(); ++d) {
        int64_t low = access.index[d].constant, high = low;
        bool padded = false;
        for (size_t a = 0; a < access.index[d].coef.size(); ++a) {
          const int64_t coef = access.index[d].coef[a];
          if (coef == 0) continue;
          padded = padded || (bounds_.stages[s].axes[a].pad && !ends_padding(state_.stages[s]));
          const auto [first, last] = axis_range(s, a);
          low += coef * (coef < 0 ? last : first);
          high += coef * (coef < 0 ? first : last);
        }
        const int64_t available =
            writer >= 0
                ? padded_extent(state_.stages[writer], bounds_.stages[writer], static_cast<int>(d))
                : access.buffer->shape[d];
        // A guard, of the read or of the stage's points, knows nothing of padding, but keeps the
        // dimensions that it tests.
        if ((access.guarded || state_.stages[s].info->stage.where) && !padded) continue;
        if (low < 0 || high >= available) {
          return invalid("{}: a padded tail would read {}..{} of {} elements of {}",
                         state_.stages[s].name(), low, high, available, access.buffer->name);
        }
      }
    }
    return ok_status();
  }

  const State& state_;
  const Bounds& bounds_;
  VisibleLoops visible_;
};

}  // namespace

Status check_legality(const State& state, const Bounds& bounds) {
  Legality legality(state, bounds);
  for (size_t s = 0; s < state.stages.size(); ++s)
    HONE_RETURN_IF_ERROR(legality.check_stage(static_cast<int>(s)));
  return check_threads(state, bounds);
}

}  // namespace hone::schedule
