// compute/join_reduce_axes.h - neighbouring axes of a reduction that lie one behind the other at
// the end of its operand become one: the sum of an image of 56 x 56 runs over 3136 elements, and
// not across the lanes of a vector once a row.
#pragma once

#include "hone/compute/dag.h"

namespace hone::compute {

// The same computation on the same memory; an operand that nothing else reads has fewer dimensions.
[[nodiscard]] Dag join_reduce_axes(Dag dag);

}  // namespace hone::compute
