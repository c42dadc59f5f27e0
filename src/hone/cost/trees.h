// cost/trees.h - a sum of regression trees: what boosting makes, evaluated here without its
// library.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hone/base/status.h"

namespace hone::cost {

// Trees in preorder: the node after an inner one is where values below the threshold go.
struct TreeNode {
  int32_t feature = -1;  // -1: a leaf
  float value = 0;       // the threshold, or what a leaf adds
  int32_t right = 0;     // index of the other child, within the node list
  bool operator==(const TreeNode&) const = default;
};

// A tree as libraries write it: of each node its children, -1 for a leaf's, what it looks at, and
// the threshold or what a leaf adds. The root is the first.
struct TreeArrays {
  std::vector<int> left, right, feature;
  std::vector<float> value;
};
[[nodiscard]] std::vector<TreeNode> in_preorder(const TreeArrays& tree);

class Trees {
 public:
  Trees() = default;
  // Nodes of one tree, `right` counted from its first node.
  void add(std::span<const TreeNode> tree);
  void append(const Trees& others);
  [[nodiscard]] double predict(std::span<const float> features) const;
  // Of rows of features, one after the other: a sum for each.
  void predict(std::span<const float> rows, std::span<double> sums) const;
  [[nodiscard]] size_t size() const { return roots_.size(); }
  [[nodiscard]] bool operator==(const Trees&) const = default;

  // One line per tree: "12<3.5 0.25 -0.5" is a split of feature 12 and its two leaves.
  [[nodiscard]] std::string format() const;
  // Splits may name features below `num_features` only.
  [[nodiscard]] static Result<Trees> parse(std::string_view text, int num_features);

 private:
  // A leaf asks something that is never so, and leads back to itself: one walks on from any node.
  struct Walked {
    float threshold;
    int32_t feature;
    int32_t skipped;  // nodes between this one and the right child
    bool operator==(const Walked&) const = default;
  };
  [[nodiscard]] static bool is_leaf(const Walked& node) { return node.skipped < 0; }
  [[nodiscard]] int32_t levels_below(size_t at) const;

  std::vector<size_t> roots_;
  std::vector<int32_t> levels_;  // of each tree: how many splits at most are passed
  std::vector<Walked> nodes_;
  std::vector<float> values_;  // what each node adds if it is a leaf
};

}  // namespace hone::cost
