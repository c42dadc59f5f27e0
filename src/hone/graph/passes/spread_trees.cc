#include "hone/graph/passes/pass.h"

namespace hone::graph {

// The result has the same shape whatever the block is.
Status spread_trees(Graph& graph, const PassOptions& options) {
  if (!options.any_order) return ok_status();
  for (Node& node : graph.nodes) {
    if (node.type == "hone.TreeWalk") node.attributes.set("block", int64_t{1});
  }
  return ok_status();
}

}  // namespace hone::graph
