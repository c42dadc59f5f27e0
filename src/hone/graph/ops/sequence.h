// graph/ops/sequence.h - the operators on sequences and optional values.
#pragma once

#include <span>

#include "hone/graph/aggregates.h"

namespace hone::graph {

[[nodiscard]] std::span<const Op> sequence_ops();
// Returns a tensor of which each row is a part of a sequence; kNoValue if these have different
// shapes, or there are none.
[[nodiscard]] ValueId rows_of_parts(ExpandContext& c, const Aggregate& sequence);

}  // namespace hone::graph
