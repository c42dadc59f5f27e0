// graph/ops/movement.h - the part of its operand that a Slice takes, and the places of the operands
// of a hone.Interleave in its result.
#pragma once

#include "hone/graph/op.h"

namespace hone::graph {

// Element i of dimension d of the result is element start[d] + i * step[d] of the operand.
struct SliceRange {
  Shape start, step, shape;
};
// Returns the range of a Slice node whose shape rule has run.
[[nodiscard]] SliceRange slice_range(const Graph& graph, const Node& node);
// Likewise, of an operand of this shape.
[[nodiscard]] SliceRange slice_range(const Graph& graph, const Node& node, const Shape& shape);

// Element i of dimension d of a part is element start[d] + i * step[d] of the whole.
struct PartPlace {
  Shape start, step;
};
// Returns the places of a hone.Interleave's operands. Its attribute "steps" tells for each
// dimension how many parts are interleaved along it; the operands are all combinations of these,
// with the last dimension's varying fastest.
[[nodiscard]] std::vector<PartPlace> interleaved_parts(const Node& node);

}  // namespace hone::graph
