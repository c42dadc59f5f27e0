// graph/ops/movement.h - which part of its operand a Slice takes.
#pragma once

#include "hone/graph/op.h"

namespace hone::graph {

// Element i of dimension d of the result is element start[d] + i * step[d] of the operand.
struct SliceRange {
  Shape start, step, shape;
};
// Of a Slice node whose shape rule has run.
[[nodiscard]] SliceRange slice_range(const Graph& graph, const Node& node);

}  // namespace hone::graph
