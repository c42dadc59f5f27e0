// space/rows.h - what the rules for reductions along rows share (internal to space).
#pragma once

#include "hone/space/sketch.h"

namespace hone::space {

inline bool is_reduction(const schedule::StageInfo& info) { return !info.stage.reduce.empty(); }
// The reduce axis (position in info.axes) along which a read of a single buffer is contiguous and
// which no other dimension of that buffer mentions; -1 if there is none.
[[nodiscard]] int contiguous_reduce_axis(const schedule::StageInfo& info);
// How many different buffers its spatial axes move through: a matrix product has two.
[[nodiscard]] int moving_operands(const schedule::StageInfo& info);
// exp, div and the like: not worth computing twice.
[[nodiscard]] bool is_expensive(const compute::Stage& stage);
// A lone reduction that writes the result gets a stage that copies it out.
[[nodiscard]] Status copy_out(SketchBuilder& builder);

}  // namespace hone::space
