// graph/passes/rewrite.h - how passes put nodes in the place of others.
//
// A rule looks at one node and, if it can do better, replaces it; rewrite() applies rules to all
// nodes, the first of the list first, until none applies. A replacement takes time for the nodes
// that it touches, not for the graph: while rules run, nodes keep their indices, those that are
// gone leave empty ones behind, and new ones stand at the end of Graph::nodes; the order is a list
// of its own until rewrite() is done.
#pragma once

#include <functional>
#include <span>

#include "hone/graph/expand.h"

namespace hone::graph {

class Rewriting;

// What a rule sees: the node at `index`, of one result. It returns whether it changed the graph.
struct RewriteSite {
  Graph& graph;
  const Uses& uses;  // up to date
  size_t index;
  Rewriting& rewriting;
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

// How a rule changes the graph, each at most once. Nodes that only the old one read are gone then.
// Replaces the node by what `build` makes; the value it returns, of the same type and shape, takes
// the place of the result.
using Build = std::function<ValueId(ExpandContext&)>;
[[nodiscard]] Status replace_node(const RewriteSite& site, const Build& build);
// Makes every reader of the node's result read `value` instead.
void bypass_node(const RewriteSite& site, ValueId value);
// Makes the node read `value` as its operand i.
void replace_operand(const RewriteSite& site, size_t i, ValueId value);

struct Rule {
  const char* name;  // under which Graph::rules counts it
  Result<bool> (*apply)(const RewriteSite&);
};
[[nodiscard]] Status rewrite(Graph& graph, std::span<const Rule> rules);

// The value of a constant that is the same for all elements; nullopt if it is none.
[[nodiscard]] std::optional<double> uniform_constant(const Value& value);
// The permutation of a Transpose node, written out.
[[nodiscard]] Shape permutation_of(const Graph& graph, const Node& node);

[[nodiscard]] bool same_bytes(const Tensor& a, const Tensor& b);
// Attributes with the same names and values; graphs are never the same.
[[nodiscard]] bool same_attributes(const Attributes& a, const Attributes& b);

}  // namespace hone::graph
