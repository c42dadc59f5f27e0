// space/rules/rows.h - questions that the rules for reductions along rows ask of stages (internal
// to space).
#pragma once

#include "hone/space/sketch.h"

namespace hone::space {

inline bool is_reduction(const schedule::StageInfo& info) { return !info.stage.reduce.empty(); }
// Returns a reduce axis (position in info.axes) that alone indexes the last dimension of a read,
// with coefficient 1, so that the read is contiguous along it; -1 if there is none.
[[nodiscard]] int contiguous_reduce_axis(const schedule::StageInfo& info);
// Returns the number of different buffers whose reads move with a reduce axis: a matrix product has
// two.
[[nodiscard]] int moving_operands(const schedule::StageInfo& info);
// Returns whether the stage computes exp, div or the like, which is not worth computing twice.
[[nodiscard]] bool is_expensive(const compute::Stage& stage);
// Adds a stage that copies the result out, if the last stage is a reduction.
[[nodiscard]] Status copy_out(SketchBuilder& builder);

}  // namespace hone::space
