// cost/trees.h - a sum of regression trees, as boosting makes them, evaluated without its library.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hone/base/status.h"

namespace hone::cost {

// Nodes are in preorder: the child for values below the threshold is the next node.
struct TreeNode {
  int32_t feature = -1;  // -1 for a leaf
  float value = 0;       // threshold, or the value of a leaf
  int32_t right = 0;     // index of the other child in the list of nodes
  bool operator==(const TreeNode&) const = default;
};

// A tree in the form of the libraries: for each node its children (-1 for a leaf's), its feature,
// and its threshold or its value as a leaf. The root is first.
struct TreeArrays {
  std::vector<int> left, right, feature;
  std::vector<float> value;
};
[[nodiscard]] std::vector<TreeNode> in_preorder(const TreeArrays& tree);

class Trees {
 public:
  Trees() = default;
  // Adds the nodes of one tree, in which `right` counts from its first node.
  void add(std::span<const TreeNode> tree);
  void append(const Trees& others);
  [[nodiscard]] double predict(std::span<const float> features) const;
  // Computes the sum for each of several rows of features.
  void predict(std::span<const float> rows, std::span<double> sums) const;
  [[nodiscard]] size_t size() const { return roots_.size(); }
  [[nodiscard]] bool operator==(const Trees&) const = default;

  // Prints one line per tree: "12<3.5 0.25 -0.5" is a split of feature 12 and its two leaves.
  [[nodiscard]] std::string format() const;
  // Parses such lines. Splits may use only features below `num_features`.
  [[nodiscard]] static Result<Trees> parse(std::string_view text, int num_features);

 private:
  // A node as it is evaluated. A leaf has a condition that is never true and leads back to itself,
  // so evaluation takes the same number of steps for every row.
  struct Walked {
    float threshold;
    int32_t feature;
    int32_t skipped;  // number of nodes between this one and its right child
    bool operator==(const Walked&) const = default;
  };
  [[nodiscard]] static bool is_leaf(const Walked& node) { return node.skipped < 0; }
  [[nodiscard]] int32_t levels_below(size_t at) const;

  std::vector<size_t> roots_;
  std::vector<int32_t> levels_;  // per tree: the most splits on a path
  std::vector<Walked> nodes_;
  std::vector<float> values_;  // value of each node if it is a leaf
};

}  // namespace hone::cost
