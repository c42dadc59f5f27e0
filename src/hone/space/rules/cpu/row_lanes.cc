// Products of few columns with the vector lanes along the rows: where the left operand is constant,
// and packed so that rows lie side by side, or where they lie so (it is transposed). Lanes along
// three columns would be three of a vector's; along rows all of them work, and each column is a
// broadcast. What follows the sum stores columns apart, once for a whole sum.
//
// Loops and decisions are those of a contraction (make_contraction.cc).
#include <algorithm>

#include "hone/base/round_up.h"
#include "hone/space/rules/cpu/contraction.h"
#include "hone/space/rules/cpu/rules.h"

namespace hone::space {
namespace {

// Lanes along the columns are as good where so few of them have none: a fifth.
constexpr int64_t kIdleShare = 5;

int64_t columns_of(const schedule::StageInfo& e) {
  const int unit = unit_stride_axis(e);
  return unit < 0 ? 1 : e.axes[static_cast<size_t>(unit)].extent;
}

// E's axis along which the lanes of the operands that move with it are neighbours, or are once a
// constant one is packed, the longest of them; -1 if there is none.
int row_axis(const schedule::State& state, const schedule::StageInfo& e,
             const schedule::StageInfo& r, const std::vector<std::string>& names) {
  const int unit = unit_stride_axis(e);
  int best = -1;
  for (int a = 0; a < e.num_spatial(); ++a) {
    const compute::Axis& axis = e.axes[static_cast<size_t>(a)];
    if (a == unit || axis.extent == 1) continue;
    const int of_r = axis_named(r, names[static_cast<size_t>(a)]);
    const compute::Access* packed = packable(state, r, of_r);
    bool fits = true;
    int moving = 0, shared = 0;
    for (const compute::Access& read : r.reads) {
      if (read.buffer == r.stage.outputs[0].buffer) continue;
      const bool is_moving = moves(read, of_r);
      (is_moving ? moving : shared) += 1;
      if (is_moving && (packed == nullptr || read.buffer != packed->buffer))
        fits = fits && is_contiguous(read, static_cast<size_t>(of_r));
    }
    if (!fits || moving != 1 || shared == 0) continue;
    if (best < 0 || axis.extent > e.axes[static_cast<size_t>(best)].extent) best = a;
  }
  return best;
}

}  // namespace

int row_lanes_axis(const SketchBuilder& builder, const schedule::StageInfo& e,
                   const schedule::StageInfo& r, const std::vector<std::string>& names) {
  const int64_t columns = columns_of(e), lanes = lanes_of(builder.cpu(), e);
  const int64_t whole = round_up(columns, lanes);
  if (lanes < 2 || r.stage.outputs.size() != 1 || kIdleShare * (whole - columns) <= whole)
    return -1;
  const int axis = row_axis(builder.state, e, r, names);
  return axis >= 0 && e.axes[static_cast<size_t>(axis)].extent >= lanes ? axis : -1;
}

Fit add_row_lanes(SketchBuilder& builder, const Task& task) {
  const schedule::StageInfoPtr e = builder.info(task.epilogue), r = builder.info(task.reduction);
  if (e->constant) return Fit::kNone;
  const auto names = match_axes(*e, *r);
  const int axis = names ? row_lanes_axis(builder, *e, *r, *names) : -1;
  if (axis < 0) return Fit::kNone;
  std::shared_ptr<Contraction> group =
      make_contraction(builder, task.epilogue, task.reduction, {.vector = axis});
  if (!group) return Fit::kNone;
  builder.groups.push_back(std::move(group));
  return 2 * columns_of(*e) <= lanes_of(builder.cpu(), *e) ? Fit::kBest : Fit::kPossible;
}

}  // namespace hone::space
