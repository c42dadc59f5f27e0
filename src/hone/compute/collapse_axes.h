// compute/collapse_axes.h - joins neighbouring axes that are contiguous in every buffer: an
// elementwise task over [1, 1152, 7, 7] runs over 56448 elements, without a tail per row.
#pragma once

#include "hone/compute/dag.h"

namespace hone::compute {

// Returns the same computation on the same memory; buffers have as many elements and fewer
// dimensions. If a task reduces down columns (softmax over channels), only those are joined: [1,
// 21, 260, 260] has 67600. Around a reduction that finds positions (argmax), any axes are joined.
// The Dag is returned unchanged if it has another reduction, an extern stage, or no reductions but
// stages of different rank.
[[nodiscard]] Dag collapse_axes(const Dag& dag);

}  // namespace hone::compute
