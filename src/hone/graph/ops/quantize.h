// graph/ops/quantize.h - helpers of operators on quantized numbers.
#pragma once

#include "hone/graph/expand.h"

namespace hone::graph {

// Rounds floats to the nearest even integer, adds a zero point (unless it is kNoValue), and
// saturates to the range of the 8- or 16-bit type that they get.
[[nodiscard]] ValueId saturated(ExpandContext& c, ValueId x, ValueId zero, DType type);

}  // namespace hone::graph
