// groups.h - divides a graph of ONNX Runtime into parts that Hone may compile.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "hone/operators.h"
#include "hone/options.h"

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

// The values whose open dimensions are known to be sizes of the model's inputs, or have a range
// that the user gave: their symbols are those of inputs. Others may have any size in a run.
class TiedSizes {
 public:
  TiedSizes(const Graph& graph, const ModelOptions& given);
  [[nodiscard]] bool has(const std::string& value) const;
  // Marks the nodes of the group as not usable that read values of other sizes from outside of it,
  // or would read them once the nodes before are left out. Returns whether there are any.
  [[nodiscard]] bool leave_out_others(const Group& group, std::vector<bool>& usable) const;
  // Returns ranges for the symbols of the inputs that other parts of the model compute. For those
  // of the model's own inputs Hone has rules, which go by the place of a dimension.
  [[nodiscard]] std::map<std::string, ShapeRange> ranges_between_parts(const Group& group) const;

 private:
  const Graph& graph_;
  const ModelOptions& given_;
  std::set<std::string> symbols_;           // of the model's inputs
  std::map<std::string, DimRange> ranges_;  // of these symbols
};

// Divides the nodes that are usable into the fewest groups that need only one level of others
// before each; `usable` has an entry for each node.
[[nodiscard]] std::vector<Group> group_nodes(const Graph& graph, const std::vector<bool>& usable);

}  // namespace hone::ort
