// graph/ops/ml_tree_ensemble.h - trees of ai.onnx.ml, as both forms of its operators become.
#pragma once

#include <string>
#include <vector>

#include "hone/graph/expand.h"

namespace hone::graph {

enum class TreeMode : uint8_t { kLeq, kLt, kGte, kGt, kEq, kNeq, kMember, kLeaf };

struct TreeNode {
  TreeMode mode = TreeMode::kLeaf;
  int64_t feature = 0;
  double split = 0;
  int64_t on_true = -1, on_false = -1;
  bool missing_is_true = false;  // a value that is not a number goes the way of `true`
};

// A leaf adds this to a target.
struct LeafWeight {
  int64_t node, target;
  double value;
};

struct TreeEnsemble {
  std::vector<TreeNode> nodes;
  std::vector<int64_t> roots;
  std::vector<LeafWeight> weights;
  int64_t targets = 1;
  std::string aggregate = "SUM";
  std::vector<double> base;  // nothing, one for all targets, or one per target
  DType type = DType::kF32;  // the type of splits and weights
};

// Return the trees of the context's node; targets and aggregate are left to the caller.
// The form of before version 5 lists nodes by tree and number, and weights by these, in attributes
// that begin with `weights`: "target" or "class".
[[nodiscard]] Result<TreeEnsemble> read_listed_trees(const ExpandContext& c,
                                                     const std::string& weights);
// The form of version 5 has inner nodes and leaves in lists of their own.
[[nodiscard]] Result<TreeEnsemble> read_split_trees(const ExpandContext& c);

}  // namespace hone::graph
