// graph/fuse.h - which nodes form one task. A group is an anchor (contraction, reduction, opaque or
// elementwise) and elementwise followers of its shape; only its last node's result is seen outside,
// so no two groups can depend on each other in a circle. A depthwise convolution and the pointwise
// one (1x1) that alone reads it can be joined into one task: whether that pays is asked for each.
#pragma once

#include <functional>

#include "hone/graph/graph.h"

namespace hone::graph {

struct FuseOptions {
  int max_followers = 16;
  // Whether two groups shall be one, the second reading nothing of the first but its result; none
  // are if it is not set.
  std::function<bool(const std::vector<int>& first, const std::vector<int>& second)> join = {};
};

// Groups of node indices, each in topological order, the groups in an order in which they can run.
// Views belong to no group.
[[nodiscard]] std::vector<std::vector<int>> fuse(const Graph& graph,
                                                 const FuseOptions& options = {});

}  // namespace hone::graph
