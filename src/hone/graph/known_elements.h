// graph/known_elements.h - which elements of a small vector of integers are known although others
// depend on data: the extents of a value of which only some dimensions vary.
#pragma once

#include <vector>

#include "hone/graph/graph.h"

namespace hone::graph {

// Makes the only result of a node a constant if it chooses among such elements and all that it
// chooses are known. The nodes are those that were made before, in topological order.
void choose_known_elements(Graph& graph, const Node& node, const std::vector<Node>& nodes);

}  // namespace hone::graph
