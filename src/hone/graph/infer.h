// graph/infer.h - the inference of shapes, for who has to know which values belong to which node
// of the file.
#pragma once

#include "hone/graph/op.h"

namespace hone::graph {

// Does what infer_shapes(graph) does. `ends` receives, for each node that the graph had, the number
// of values that there are after it was inferred: what a node is replaced by makes new ones.
[[nodiscard]] Status infer_shapes(Graph& graph, std::vector<size_t>& ends);

}  // namespace hone::graph
