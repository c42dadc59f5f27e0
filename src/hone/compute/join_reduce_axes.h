// compute/join_reduce_axes.h - joins neighbouring axes of a reduction that are contiguous at the
// end of its operand: the sum of an image of 56 x 56 runs over 3136 elements, and reduces across
// the lanes of a vector once instead of once per row.
#pragma once

#include "hone/compute/dag.h"

namespace hone::compute {

// Returns the same computation on the same memory. An operand that nothing else reads has fewer
// dimensions.
[[nodiscard]] Dag join_reduce_axes(Dag dag);

}  // namespace hone::compute
