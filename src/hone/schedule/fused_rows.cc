#include "hone/schedule/fused_rows.h"

#include <algorithm>

namespace hone::schedule {

SmallVector<FusedTerm, 4> fused_terms(const StageState& stage, const StageBounds& bounds,
                                      const compute::AffineRow& row, SmallVector<bool, 16>& taken) {
  SmallVector<FusedTerm, 4> found;
  const auto axes = static_cast<int>(row.coef.size());
  for (int a = 0; a < axes; ++a) taken.push_back(false);
  for (size_t f = 0; f < stage.loops.size(); ++f) {
    const Loop& fused = stage.loops[f];
    if (fused.digits.empty() || fused.children.empty()) continue;
    int64_t coef = 0;
    const bool fits = std::all_of(fused.digits.begin(), fused.digits.end(), [&](int digit) {
      const LoopBounds& loop = bounds.loops[static_cast<size_t>(digit)];
      if (digit >= axes || !bounds.axes[static_cast<size_t>(digit)].min.terms.empty()) return false;
      if (loop.extent == 1) return true;
      const int64_t weight = row.coef[static_cast<size_t>(digit)];
      if (coef == 0) coef = weight / loop.digit_stride;
      return weight != 0 && weight == coef * loop.digit_stride;
    });
    if (!fits || coef == 0) continue;
    for (const int digit : fused.digits) taken[static_cast<size_t>(digit)] = true;
    found.push_back({static_cast<int>(f), coef});
  }
  return found;
}

bool add_leaves(const State& state, const Bounds& bounds, int s, int loop_index, int64_t stride,
                Linear& own) {
  const std::vector<Loop>& loops = state.stages[static_cast<size_t>(s)].loops;
  const Loop& loop = loops[static_cast<size_t>(loop_index)];
  if (loop.fused_into < 0 && !loop.children.empty()) {
    return std::all_of(loop.children.begin(), loop.children.end(), [&](int child) {
      return add_leaves(state, bounds, s, child, stride * loops[static_cast<size_t>(child)].stride,
                        own);
    });
  }
  const auto& extents = bounds.stages[static_cast<size_t>(s)].loops;
  if (extents[static_cast<size_t>(loop_index)].extent == 1) return true;
  return own.add(s, loop_index, stride);
}

}  // namespace hone::schedule
