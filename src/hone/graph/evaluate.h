// graph/evaluate.h - the results of one node from constant operands, by its own Dag and the
// interpreter: what an operator computes is written once.
#pragma once

#include "hone/graph/op.h"

namespace hone::graph {

// A node as the only one of a graph, its operands and results dense and in the order of their
// dimensions: where layouts, storage and passes have no say.
struct LoneNode {
  Graph graph;
  std::vector<ValueId> originals;  // per value: the id that it has in the whole graph
};
[[nodiscard]] LoneNode isolate(const Graph& graph, const Node& node);

// Needs shapes, an `emit`, and constant operands. Slow: for what is small, or done once. What would
// take more than a second or two ends with Code::kTimeout.
[[nodiscard]] Result<std::vector<Tensor>> evaluate_node(const Graph& graph, const Node& node);

}  // namespace hone::graph
