// graph/evaluate.h - computes the results of one node from constant operands by its own Dag and the
// interpreter, so that what an operator computes is written only once.
#pragma once

#include "hone/graph/op.h"

namespace hone::graph {

// A node as the only one of a graph. Its operands and results are dense and in the order of their
// dimensions, so layouts, storage and passes have no influence.
struct LoneNode {
  Graph graph;
  std::vector<ValueId> originals;  // per value: its id in the whole graph
};
[[nodiscard]] LoneNode isolate(const Graph& graph, const Node& node);

// Evaluates a node that has shapes, an `emit` and constant operands. It is slow, so it is for small
// nodes, or for work that is done once. What would take more than a second or two ends with
// Code::kTimeout.
[[nodiscard]] Result<std::vector<Tensor>> evaluate_node(const Graph& graph, const Node& node);

}  // namespace hone::graph
