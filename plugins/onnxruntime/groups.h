// groups.h - divides a graph of ONNX Runtime into parts that Hone may compile.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "hone/operators.h"

#include "ort_graph.h"

namespace hone::ort {

// The operators that Hone compiles, by name.
class Support {
 public:
  Support();
  // Returns whether Hone may compile the node: its operator is known, and all its values are
  // tensors of known rank and of types that arrays have. A node with subgraphs is left out.
  [[nodiscard]] bool may_compile(const Graph& graph, const GraphNode& node) const;
  // Returns whether the node has work at run time, which views of other values and shape
  // arithmetic have not.
  [[nodiscard]] bool has_work(const GraphNode& node) const;

 private:
  [[nodiscard]] const OperatorInfo* find(const GraphNode& node) const;
  std::map<std::string, OperatorInfo> operators_;
};

// Nodes that become one library. No other node lies on a path between two of them.
struct Group {
  std::vector<size_t> nodes;  // their places in the graph, in order
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> constants;  // initializers that they read
};

// Divides the nodes that are usable into the fewest groups that need only one level of others
// before each; `usable` has an entry for each node.
[[nodiscard]] std::vector<Group> group_nodes(const Graph& graph, const std::vector<bool>& usable);

}  // namespace hone::ort
