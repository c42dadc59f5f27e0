// graph/subgraph.h - the body of an If, Loop or Scan, as it was imported: nodes over local value
// numbers, to be inlined any number of times (ExpandContext::inline_body). Values of the graph
// around it that it reads are operands of the node that holds it, behind the node's own.
#pragma once

#include "hone/graph/graph.h"

namespace hone::graph {

struct SubgraphBody {
  std::string name;
  std::vector<Node> nodes;         // in topological order; operands and results are local numbers
  std::vector<std::string> names;  // of the local values, by number
  std::vector<int> inputs, outputs;
  std::vector<std::pair<int, Tensor>> constants;
  std::vector<std::pair<int, size_t>> captures;  // local number, operand of the holding node
};

}  // namespace hone::graph
