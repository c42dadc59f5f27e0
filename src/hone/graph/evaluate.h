// graph/evaluate.h - the results of one node from constant operands, by its own Dag and the
// interpreter: what an operator computes is written once.
#pragma once

#include "hone/graph/op.h"

namespace hone::graph {

// Needs shapes, an `emit`, and constant operands. Slow: for what is small, or done once. What would
// take more than a second or two ends with Code::kTimeout.
[[nodiscard]] Result<std::vector<Tensor>> evaluate_node(const Graph& graph, const Node& node);

}  // namespace hone::graph
