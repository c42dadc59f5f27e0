// graph/passes/cast_node.h - casts between values that a pass has made.
#pragma once

#include "hone/graph/node_names.h"

namespace hone::graph {

// Returns a Cast of the value `from` to the type of `to`, which is its result.
[[nodiscard]] Node cast_node(const Graph& graph, NodeNames& names, ValueId from, ValueId to);

}  // namespace hone::graph
