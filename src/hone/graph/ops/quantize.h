// graph/ops/quantize.h - what operators on quantized numbers share.
#pragma once

#include "hone/graph/expand.h"

namespace hone::graph {

// Floats rounded to the nearest even integer, moved by a zero point (or kNoValue), and ended at the
// range of the 8- or 16-bit type that they get.
[[nodiscard]] ValueId saturated(ExpandContext& c, ValueId x, ValueId zero, DType type);

}  // namespace hone::graph
