// graph/ops/movement.h - which part of its operand a Slice takes, and where the operands of a
// hone.Interleave lie in its result.
#pragma once

#include "hone/graph/op.h"

namespace hone::graph {

// Element i of dimension d of the result is element start[d] + i * step[d] of the operand.
struct SliceRange {
  Shape start, step, shape;
};
// Of a Slice node whose shape rule has run.
[[nodiscard]] SliceRange slice_range(const Graph& graph, const Node& node);

// Element i of dimension d of a part is element start[d] + i * step[d] of the whole.
struct PartPlace {
  Shape start, step;
};
// Of a hone.Interleave: its attribute "steps" says for each dimension how many parts take turns
// along it; the operands are all combinations of these, the last dimension's fastest.
[[nodiscard]] std::vector<PartPlace> interleaved_parts(const Node& node);

}  // namespace hone::graph
