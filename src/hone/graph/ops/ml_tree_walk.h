// graph/ops/ml_tree_walk.h - hone.TreeWalk, which takes rows of data through packed trees.
#pragma once

#include <span>

#include "hone/graph/ops/ml_tree_pack.h"

namespace hone::graph {

// Adds the nodes that compute, for rows of data [rows, features], what the trees add up to:
// [rows, targets] of the leaves' type. There must be rows. The order of sums depends on the number
// of rows and on nothing else: trees of one depth come together, complete ones first; each row adds
// them one by one, a row that goes alone by pairs of eight trees at a time, and few rows add the
// sums of parts of the trees. Where the number of rows varies from run to run, the node's attribute
// `rows` has the largest one, which then decides the order at any number.
[[nodiscard]] ValueId add_tree_walk(ExpandContext& c, ValueId data, const PackedTrees& trees,
                                    int64_t targets, const std::string& aggregate);

[[nodiscard]] std::span<const Op> ml_tree_walk_ops();

}  // namespace hone::graph
