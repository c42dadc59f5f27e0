// compute/stage_body.h - the statements of one point of a stage, which the naive and the scheduled
// program share.
#pragma once

#include <functional>

#include "hone/compute/dag.h"

namespace hone::compute {

// The spatial axes that every output uses, and the others (such as the head dimension of an
// attention's accumulator, which its running maximum does not have).
struct AxisSplit {
  std::vector<Axis> common;
  std::vector<Axis> extra;
};
[[nodiscard]] bool uses_axis(const Output& output, const Axis& axis);
[[nodiscard]] AxisSplit split_axes(const Stage& stage);

// The condition `where` in two parts: conjuncts without reduce axes guard the whole point, the
// others guard only the update. A part is null if there is nothing to test.
struct WhereSplit {
  ir::Expr point;
  ir::Expr update;
};
[[nodiscard]] WhereSplit split_where(const Stage& stage);

// Makes the stores of one point of the stage's common and reduce axes, which update all outputs
// together. Outputs with extra axes come first (in `extra_loops`), because they read the old values
// of the others. The other ones are stored in their order, through temporaries if one reads what
// was stored before it.
using ExtraLoops = std::function<std::vector<ir::Stmt>(const Output&, std::vector<ir::Stmt>)>;
[[nodiscard]] std::vector<ir::Stmt> point_stores(const Stage& stage, const ExtraLoops& extra_loops);

}  // namespace hone::compute
