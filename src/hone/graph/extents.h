// graph/extents.h - values whose shape depends on data. Value::shape is the largest shape that they
// may have, and Value::extents is the id of an i64 vector with their actual shape. Their elements
// are where they would be in the largest shape; elements beyond the extents are undefined.
//
// Operators that do not support this refuse such operands; operators that keep or rearrange
// dimensions pass them on. Outputs of the model are made dense by hone.Compact, whose second result
// the runtime reads as the shape.
#pragma once

#include "hone/graph/expand.h"

namespace hone::graph {

// Gives the result of a node, which was inferred, the extents that follow from those of its
// operands, or returns an error if the operator does not support them. It may append nodes that
// compute them.
[[nodiscard]] Status carry_extents(Graph& graph, const Node& node, std::vector<Node>& nodes);
// Makes outputs with extents dense. It is called after all nodes.
[[nodiscard]] Status compact_outputs(Graph& graph, std::vector<Node>& nodes);

// Replaces a node that has operands of dynamic shape, or an operand that is a shape known only at
// run time, by the nodes that compute its results. Returns false if it built nothing; the node is
// then inferred as usual.
[[nodiscard]] Result<bool> propagate_dynamic_shapes(Graph& graph, const Node& node,
                                                    std::vector<Node>& nodes);

// For expansions: these return the same elements without extents, in the largest shape, and the
// extents, whether they are static or not.
[[nodiscard]] ValueId without_extents(ExpandContext& c, ValueId x);
[[nodiscard]] ValueId actual_extents(ExpandContext& c, ValueId x);

// An extent of a shape that is to be made: dimension `dim` of `extents`, or the number `dim` if
// these are missing.
struct ExtentPart {
  ValueId extents = kNoValue;
  int64_t dim = 0;
};
[[nodiscard]] ValueId join_extents(ExpandContext& c, const std::vector<ExtentPart>& parts);

// For expansions: returns `data` with these extents, or cut to them if they are static.
[[nodiscard]] ValueId with_extents(ExpandContext& c, ValueId data, ValueId extents);

}  // namespace hone::graph
