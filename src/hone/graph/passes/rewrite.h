// graph/passes/rewrite.h - how passes put nodes in the place of others.
//
// A rule looks at one node and, if it can do better, replaces it; rewrite() applies rules to all
// nodes, the first of the list first, until none applies. Nodes stay in topological order.
#pragma once

#include <functional>
#include <span>

#include "hone/graph/expand.h"

namespace hone::graph {

// Replaces node `index`, of one result, by what `build` makes; the value it returns, of the same
// type and shape, takes the place of the result. Nodes that only the old one read are left to
// remove_dead_nodes().
using Build = std::function<ValueId(ExpandContext&)>;
[[nodiscard]] Status replace_node(Graph& graph, size_t index, const Build& build);

// What a rule sees: the node at `index`, of one result. It returns whether it changed the graph.
struct RewriteSite {
  Graph& graph;
  const Uses& uses;
  size_t index;
  [[nodiscard]] const Node& node() const { return graph.nodes[index]; }
  [[nodiscard]] const Value& result() const { return graph.value(node().outputs[0]); }
  [[nodiscard]] const Value& operand(size_t i) const { return graph.value(node().inputs[i]); }
  // The node that makes a value, or null.
  [[nodiscard]] const Node* maker(ValueId id) const;
  // The same if the value has no other use than one operand of one node.
  [[nodiscard]] const Node* sole_maker(ValueId id) const;
  // The only node that reads a value, if it reads it once and the value is no output; or -1.
  [[nodiscard]] int sole_reader(ValueId id) const;
};
using Rule = Result<bool> (*)(const RewriteSite&);
[[nodiscard]] Status rewrite(Graph& graph, std::span<const Rule> rules);

// The value of a constant that is the same for all elements; nullopt if it is none.
[[nodiscard]] std::optional<double> uniform_constant(const Value& value);
// The permutation of a Transpose node, written out.
[[nodiscard]] Shape permutation_of(const Graph& graph, const Node& node);

[[nodiscard]] bool same_bytes(const Tensor& a, const Tensor& b);
// Attributes with the same names and values; graphs are never the same.
[[nodiscard]] bool same_attributes(const Attributes& a, const Attributes& b);

}  // namespace hone::graph
