// compute/collapse_axes.h - neighbouring axes that lie one behind the other in every buffer become
// one: an elementwise task over [1, 1152, 7, 7] runs over 56448 elements, without a tail per row.
#pragma once

#include "hone/compute/dag.h"

namespace hone::compute {

// The same computation on the same memory; buffers have as many elements and fewer dimensions.
// Where a task reduces down columns (softmax over channels), only those become one: [1, 21, 260,
// 260] has 67600. Any axes do around a reduction that finds places (argmax). A Dag with another
// reduction, an extern stage, or without reductions but with stages of different rank is returned
// as it is.
[[nodiscard]] Dag collapse_axes(const Dag& dag);

}  // namespace hone::compute
