// graph/extents.h - values whose shape depends on data: Value::shape is the largest that they may
// have, Value::extents the id of an i64 vector with the shape that they do have. Their elements
// stand where they would in the largest shape; what lies behind the extents is undefined.
//
// Operators that know nothing of this refuse such operands; those that keep or rearrange dimensions
// pass them on. Outputs of the model are made dense by hone.Compact, whose second result the
// runtime reads as the shape.
#pragma once

#include "hone/graph/expand.h"

namespace hone::graph {

// After `node` was inferred: gives its result the extents that follow from its operands', or says
// that this operator cannot. May append nodes that compute them.
[[nodiscard]] Status carry_extents(Graph& graph, const Node& node, std::vector<Node>& nodes);
// After all nodes: makes the outputs with extents dense.
[[nodiscard]] Status compact_outputs(Graph& graph, std::vector<Node>& nodes);

// Instead of inferring a node with operands of varying shape, or with a shape among its operands
// that is known at run time only: the nodes that compute its results. False: nothing was built.
[[nodiscard]] Result<bool> follow_extents(Graph& graph, const Node& node, std::vector<Node>& nodes);

// For expansions: the same elements without extents, all of the largest shape; the extents, be they
// known or not.
[[nodiscard]] ValueId without_extents(ExpandContext& c, ValueId x);
[[nodiscard]] ValueId actual_extents(ExpandContext& c, ValueId x);

// An extent of a shape to be made: dimension `dim` of some extents, or the number `dim`.
struct ExtentPart {
  ValueId extents = kNoValue;
  int64_t dim = 0;
};
[[nodiscard]] ValueId join_extents(ExpandContext& c, const std::vector<ExtentPart>& parts);

// For expansions: `data` with these extents; where they are known already, cut to them.
[[nodiscard]] ValueId with_extents(ExpandContext& c, ValueId data, ValueId extents);

}  // namespace hone::graph
