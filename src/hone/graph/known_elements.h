// graph/known_elements.h - which elements of a small vector of integers are known although others
// depend on data: the extents of a value of which only some dimensions vary.
#pragma once

#include <optional>
#include <vector>

#include "hone/graph/graph.h"

namespace hone::graph {

// Makes the only result of a node a constant if it chooses among such elements and all that it
// chooses are known. The nodes are those that were made before, in topological order.
void choose_known_elements(Graph& graph, const Node& node, const std::vector<Node>& nodes);

// An element of a value, counted in the order of all of them.
struct ElementOf {
  ValueId value = kNoValue;
  int64_t element = 0;
  auto operator<=>(const ElementOf&) const = default;
};
// Returns an element if it is a constant, or moved from one, or always has its upper bound.
[[nodiscard]] std::optional<int64_t> known_element(const Graph& graph,
                                                   const std::vector<Node>& nodes, ElementOf at);
// Returns which element of an operand element i of the node's only result is, if the node only
// moves elements.
[[nodiscard]] std::optional<ElementOf> moved_from(const Graph& graph,
                                                  const std::vector<Node>& nodes, const Node& node,
                                                  int64_t i);
// Returns the number that an element of the value is by itself: of a constant, or because it always
// has its upper bound.
[[nodiscard]] std::optional<int64_t> number_of(const Graph& graph, ElementOf at);
// Returns a - b, if that follows from sums and differences with constants and with elements that
// are terms of both: b + 1 and b.
[[nodiscard]] std::optional<int64_t> difference_of_elements(const Graph& graph,
                                                            const std::vector<Node>& nodes,
                                                            ElementOf a, ElementOf b);
// Returns whether two elements are one in all runs: moved from one, a number, or made alike of what
// is one, as the numbers of elements that one condition chooses of two values.
[[nodiscard]] bool are_same_element(const Graph& graph, const std::vector<Node>& nodes, ElementOf a,
                                    ElementOf b);

}  // namespace hone::graph
