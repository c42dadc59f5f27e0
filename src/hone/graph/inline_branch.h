// graph/inline_branch.h - the nodes of a branch of an If as nodes of the file.
#pragma once

#include "hone/graph/subgraph.h"

namespace hone::graph {

// Adds the values of a branch to the graph, and its nodes to `nodes`. Returns its results. The
// graph's shapes have not been inferred, and `holder` is the If.
[[nodiscard]] std::vector<ValueId> inline_branch(Graph& graph, const Node& holder,
                                                 const SubgraphBody& branch,
                                                 std::vector<Node>& nodes);

}  // namespace hone::graph
