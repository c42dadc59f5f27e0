// graph/fuse.h - which nodes form one task. A group is an anchor (contraction, reduction, opaque or
// elementwise) and elementwise followers of its shape; only its last node's result is seen outside,
// so no two groups can depend on each other in a circle.
#pragma once

#include "hone/graph/graph.h"

namespace hone::graph {

struct FuseOptions {
  int max_followers = 16;
};

// Groups of node indices, each in topological order, the groups in an order in which they can run.
// Views belong to no group.
[[nodiscard]] std::vector<std::vector<int>> fuse(const Graph& graph,
                                                 const FuseOptions& options = {});

}  // namespace hone::graph
