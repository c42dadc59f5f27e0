// graph/passes/rewrite.h - replaces nodes for passes.
//
// A rule looks at one node and, if it can improve it, replaces it. rewrite() applies rules to all
// nodes, in the order of the list, until none applies. The time of a replacement depends on the
// nodes that it touches, not on the graph: while rules run, nodes keep their indices, removed ones
// leave empty ones behind, and new ones are appended to Graph::nodes; their order is a separate
// list until rewrite() is done.
#pragma once

#include <functional>
#include <span>

#include "hone/graph/expand.h"

namespace hone::graph {

class Rewriting;

// The input of a rule: the node at `index`, which has one result. A rule returns whether it changed
// the graph.
struct RewriteSite {
  Graph& graph;
  const Uses& uses;  // up to date
  size_t index;
  Rewriting& rewriting;
  [[nodiscard]] const Node& node() const { return graph.nodes[index]; }
  [[nodiscard]] const Value& result() const { return graph.value(node().outputs[0]); }
  [[nodiscard]] const Value& operand(size_t i) const { return graph.value(node().inputs[i]); }
  // Returns the node that makes a value, or null.
  [[nodiscard]] const Node* maker(ValueId id) const;
  // Returns that node if the value has no other use than one operand of one node, else null.
  [[nodiscard]] const Node* sole_maker(ValueId id) const;
  // Returns the only node that reads a value, if it reads it once and the value is no output; else
  // -1.
  [[nodiscard]] int sole_reader(ValueId id) const;
};

// These functions change the graph for a rule, each at most once; nodes that only the old node read
// are then removed. This one replaces the node by what `build` makes; the value that it returns, of
// the same type and shape, replaces the result.
using Build = std::function<ValueId(ExpandContext&)>;
[[nodiscard]] Status replace_node(const RewriteSite& site, const Build& build);
// Makes every reader of the node's result read `value` instead.
void bypass_node(const RewriteSite& site, ValueId value);
// Makes the node read `value` as its operand i.
void replace_operand(const RewriteSite& site, size_t i, ValueId value);

struct Rule {
  const char* name;  // name under which Graph::rules counts it
  Result<bool> (*apply)(const RewriteSite&);
};
[[nodiscard]] Status rewrite(Graph& graph, std::span<const Rule> rules);

// Returns the value of a constant whose elements are all equal; nullopt if it is none.
[[nodiscard]] std::optional<double> uniform_constant(const Value& value);
// Returns the permutation of a Transpose node, also if it is the default.
[[nodiscard]] Shape permutation_of(const Graph& graph, const Node& node);

[[nodiscard]] bool same_bytes(const Tensor& a, const Tensor& b);
// Returns whether both have the same names and values; graph-valued attributes are never the same.
[[nodiscard]] bool same_attributes(const Attributes& a, const Attributes& b);

}  // namespace hone::graph
