#include "hone/schedule/fragment_layout.h"

#include <algorithm>

#include "hone/base/round_up.h"

namespace hone::schedule {
namespace {

// Returns the axis that a dimension runs over; -1 if it is none, or not an axis as it is.
int axis_of(const compute::AffineRow& row) {
  int found = -1;
  for (size_t a = 0; a < row.coef.size(); ++a) {
    if (row.coef[a] == 0) continue;
    if (found >= 0 || row.coef[a] != 1 || row.constant != 0) return -1;
    found = static_cast<int>(a);
  }
  return found;
}

const Term* term_of(const AxisBounds& axis, int loop) {
  for (const Term& term : axis.own) {
    if (term.loop == loop) return &term;
  }
  return nullptr;
}

bool is_of_warps(const StageState& stage) {
  const auto threads = stage.thread_loops();
  return std::all_of(threads.begin(), threads.end(),
                     [&](int leaf) { return stage.loops[leaf].annotation == Annotation::kWarp; });
}

// Returns whether each iteration of a loop has points of the axis, whatever the other loops are at.
bool has_points(const AxisBounds& axis, int64_t whole, int64_t last) {
  const bool from_0 = axis.min.terms.empty() && axis.min.constant == 0;
  return last < axis.extent && (!axis.guard_high || (from_0 && last < whole));
}

}  // namespace

Result<std::vector<LayoutDim>> fragment_layout(const State& state, const Bounds& bounds, int s,
                                               int output) {
  const StageState& stage = state.stages[s];
  const StageBounds& of = bounds.stages[s];
  const std::vector<compute::AffineRow>& dims = stage.info->writes[output];
  std::vector<LayoutDim> layout;
  std::vector<LayoutDim> digits(dims.size(), {kCopies});  // that over threads, of each dimension
  for (const int leaf : stage.thread_loops()) {
    const int64_t extent = of.loops[leaf].extent;
    LayoutDim digit{kCopies, 1, extent};
    bool is_copied = true;  // whether all threads compute what does not move with the loop
    for (size_t a = 0; a < of.axes.size(); ++a) {
      const Term* term = term_of(of.axes[a], leaf);
      if (term == nullptr) continue;
      const bool all =
          has_points(of.axes[a], stage.info->axes[a].extent, term->coef * (extent - 1));
      is_copied &= all;
      for (size_t d = 0; d < dims.size(); ++d) {
        if (axis_of(dims[d]) != static_cast<int>(a)) continue;
        if (digits[d].axis != kCopies)
          return invalid("{} has two loops over threads of one axis", stage.name());
        const bool is_first = ceil_div(of.storage[output][d].extent, term->coef) <= extent;
        digit = digits[d] = {static_cast<int>(d), term->coef, is_first ? 0 : extent};
      }
    }
    if (digit.axis == kCopies && !is_copied)
      return invalid("{}: not all threads of loop {} have points", stage.name(),
                     stage.loops[leaf].name);
    layout.push_back(digit);
  }
  const auto has_one = [&](size_t d) {
    return digits[d].axis == kCopies && of.storage[output][d].extent == 1;
  };
  // What the lanes of a warp have together has rows and columns as its last dimensions.
  const bool are_warps = is_of_warps(stage);
  for (size_t d = 0; are_warps && d < dims.size(); ++d) {
    if (has_one(d)) layout.push_back({static_cast<int>(d)});
  }
  for (size_t d = 0; d < dims.size(); ++d) {
    if (are_warps && has_one(d)) continue;
    const LayoutDim& digit = digits[d];
    const int axis = static_cast<int>(d);
    if (digit.axis == kCopies) {
      layout.push_back({axis});
      continue;
    }
    if (digit.modulo > 0) layout.push_back({axis, digit.divide * digit.modulo});
    if (digit.divide > 1) layout.push_back({axis, 1, digit.divide});
  }
  return layout;
}

Result<std::vector<LayoutDim>> layout_of(const State& state, const Bounds& bounds, int s,
                                         int output) {
  const StageState& stage = state.stages[s];
  const bool has_several = stage.info->stage.outputs.size() > 1;
  if (stage.scope == ir::Scope::kFragment && has_several)
    return fragment_layout(state, bounds, s, output);
  return output == 0 ? stage.layout : std::vector<LayoutDim>();
}

}  // namespace hone::schedule
