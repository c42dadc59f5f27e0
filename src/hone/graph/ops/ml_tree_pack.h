// graph/ops/ml_tree_pack.h - trees of ai.onnx.ml as tables through which hone.TreeWalk goes.
//
// Numbers are compared by keys: unsigned integers that rise with them, so that x < s is x <= the
// key before that of s, whatever the machine does with denormal numbers. Every test becomes `x <=
// split ? left : right` that sends NaN to the right: > and >= exchange the children, == and != are
// two tests. A node that sends NaN to the left reads a copy of the data in which NaN is -infinity.
#pragma once

#include "hone/graph/ops/ml_tree_ensemble.h"

namespace hone::graph {

// Trees of one kind, which stand side by side in their tables. Complete ones have all nodes down to
// their depth: the children of node i are 2 i and 2 i + 1, the root is node 1, and node
// 2^depth + k is leaf k. Others name their children, and their leaves lead to themselves.
struct TreeGroup {
  static constexpr int64_t kByChildren = -1;
  int64_t depth = 0;  // the complete trees' depth, or kByChildren
  int64_t trees = 0;
  int64_t node = 0;  // row of the first complete tree's node 0; each tree has 2^depth rows
  int64_t leaf = 0;  // row of the first complete tree's leaf 0
};

struct PackedTrees {
  // [rows, 2] of keys' type. A node of a complete tree is a row: feature, key of the split. Others
  // have a second row: the row of the left child, behind which that of the right child comes, and
  // the row of what the node adds, if it is a leaf.
  Tensor nodes;
  // [leaves, 1 or targets]: what a leaf adds; one number where each tree has one target.
  Tensor leaves;
  // [trees, 3], i32: the root's row and the turns of kTurnSteps steps, where trees are no complete
  // ones; the target, where each tree has one.
  Tensor trees;
  std::vector<TreeGroup> groups;
  double steps = 0;  // how many a row takes through all trees, about
  // Which data the nodes read: as it is, that copy, or one behind the other.
  enum class Data : uint8_t { kPlain, kCopy, kBoth } data = Data::kPlain;
};
inline constexpr int64_t kTurnSteps = 4;

// The type of the keys of f32 or f64, and the key of a number: 2^31 or 2^63 plus its magnitude's
// bits, or minus them if it is negative. NaN has the greatest key.
[[nodiscard]] inline DType tree_key_type(DType type) {
  return type == DType::kF64 ? DType::kU64 : DType::kU32;
}
[[nodiscard]] uint64_t tree_key(DType type, double x);

// Returns the tables for data of a type and so many features. Neutral is what a leaf without a
// weight adds. The trees' nodes must not lead to themselves.
[[nodiscard]] Result<PackedTrees> pack_trees(ExpandContext& c, const TreeEnsemble& trees,
                                             DType data, int64_t features, double neutral);

}  // namespace hone::graph
