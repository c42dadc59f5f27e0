// graph/fuse.h - groups nodes into tasks. A group is an anchor (contraction, reduction, opaque or
// elementwise) and elementwise followers of its shape. Only its last node's result is used outside,
// so groups cannot depend on each other in a cycle. A depthwise convolution and the pointwise one
// (1x1) that alone reads it can be joined into one task; a callback decides whether that pays.
#pragma once

#include <functional>

#include "hone/graph/graph.h"

namespace hone::graph {

struct FuseOptions {
  int max_followers = 16;
  // Returns whether two groups are to be joined, of which the second reads only the result of the
  // first. If it is not set, none are.
  std::function<bool(const std::vector<int>& first, const std::vector<int>& second)> join = {};
};

// Returns groups of node indices, each in topological order, in an order in which they can run.
// Views belong to no group.
[[nodiscard]] std::vector<std::vector<int>> fuse(const Graph& graph,
                                                 const FuseOptions& options = {});

}  // namespace hone::graph
