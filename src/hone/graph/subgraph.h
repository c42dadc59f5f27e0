// graph/subgraph.h - the body of an If, Loop or Scan as it was imported: nodes over local value
// numbers, which can be inlined any number of times (ExpandContext::inline_body). Values of the
// enclosing graph that it reads are operands of the node that has the body, after the node's own.
#pragma once

#include <map>

#include "hone/graph/graph.h"

namespace hone::graph {

struct SubgraphBody {
  std::string name;
  std::vector<Node> nodes;         // in topological order; operands and results are local numbers
  std::vector<std::string> names;  // names of the local values, by number
  std::vector<int> inputs, outputs;
  std::vector<std::pair<int, Tensor>> constants;
  // Local number and operand of the node that has the body.
  std::vector<std::pair<int, size_t>> captures;
  // The shapes that the file declares of outputs, by local number; -1 for an open extent.
  std::map<int, Shape> declared;
};

}  // namespace hone::graph
