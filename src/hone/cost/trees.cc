#include "hone/cost/trees.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>

#include "hone/base/assert.h"

namespace hone::cost {
namespace {

constexpr int kMaxDepth = 64;
constexpr size_t kTogether = 8;  // rows that walk through a tree at a time

// Reads one line: nodes in preorder, separated by blanks.
class LineParser {
 public:
  LineParser(std::string_view line, int num_features, std::vector<TreeNode>& nodes)
      : rest_(line), num_features_(num_features), nodes_(nodes) {}

  Status tree() {
    HONE_RETURN_IF_ERROR(node(0));
    if (!rest_.empty()) return invalid("'{}' after a whole tree", rest_.substr(0, 20));
    return ok_status();
  }

 private:
  Status node(int depth) {
    if (depth > kMaxDepth) return invalid("a tree of more than {} levels", kMaxDepth);
    const std::string_view word = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(std::min(rest_.size(), word.size() + 1));
    const size_t at = nodes_.size();
    nodes_.emplace_back();
    const size_t sign = word.find('<');
    if (sign == std::string_view::npos) return number(word, nodes_[at].value);
    const auto feature = std::from_chars(word.data(), word.data() + sign, nodes_[at].feature);
    const bool known = feature.ec == std::errc() && feature.ptr == word.data() + sign &&
                       nodes_[at].feature >= 0 && nodes_[at].feature < num_features_;
    if (!known)
      return invalid("split '{}', expected a feature below {}", word.substr(0, 20), num_features_);
    HONE_RETURN_IF_ERROR(number(word.substr(sign + 1), nodes_[at].value));
    HONE_RETURN_IF_ERROR(node(depth + 1));
    nodes_[at].right = static_cast<int32_t>(nodes_.size());
    return node(depth + 1);
  }

  static Status number(std::string_view text, float& value) {
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
    if (!whole || !std::isfinite(value))
      return invalid("'{}', expected a number", text.substr(0, 20));
    return ok_status();
  }

  std::string_view rest_;
  int num_features_;
  std::vector<TreeNode>& nodes_;
};

void append(const TreeArrays& tree, size_t from, std::vector<TreeNode>& nodes) {
  const size_t at = nodes.size();
  nodes.push_back({-1, tree.value[from], 0});
  if (tree.left[from] < 0) return;
  nodes[at].feature = tree.feature[from];
  append(tree, static_cast<size_t>(tree.left[from]), nodes);
  nodes[at].right = static_cast<int32_t>(nodes.size());
  append(tree, static_cast<size_t>(tree.right[from]), nodes);
}

// Of the tree whose root is there: how many splits at most are passed.
int32_t levels_below(std::span<const TreeNode> nodes, int32_t at) {
  const TreeNode& node = nodes[static_cast<size_t>(at)];
  if (node.feature < 0) return 0;
  return 1 + std::max(levels_below(nodes, at + 1), levels_below(nodes, node.right));
}

// Where one goes from a node; from a leaf nowhere. By masks: which way is hard to foresee.
int32_t next_node(const TreeNode* nodes, int32_t at, const float* features) {
  const TreeNode& node = nodes[at];
  const int32_t leaf = node.feature >> 31;  // all bits or none
  const int32_t below = -static_cast<int32_t>(features[node.feature & ~leaf] < node.value);
  const int32_t next = (below & (at + 1)) | (~below & node.right);
  return (leaf & at) | (~leaf & next);
}

}  // namespace

std::vector<TreeNode> in_preorder(const TreeArrays& tree) {
  std::vector<TreeNode> nodes;
  append(tree, 0, nodes);
  return nodes;
}

void Trees::add(std::span<const TreeNode> tree) {
  HONE_ASSERT(!tree.empty(), "a tree has a node");
  const auto root = static_cast<int32_t>(nodes_.size());
  roots_.push_back(root);
  for (TreeNode node : tree) {
    if (node.feature >= 0) node.right += root;
    nodes_.push_back(node);
  }
  levels_.push_back(levels_below(nodes_, root));
}

void Trees::append(const Trees& others) {
  const auto shift = static_cast<int32_t>(nodes_.size());
  for (const int32_t root : others.roots_) roots_.push_back(root + shift);
  for (TreeNode node : others.nodes_) {
    if (node.feature >= 0) node.right += shift;
    nodes_.push_back(node);
  }
  levels_.insert(levels_.end(), others.levels_.begin(), others.levels_.end());
}

double Trees::predict(std::span<const float> features) const {
  double sum = 0;
  predict(features, {&sum, 1});
  return sum;
}

void Trees::predict(std::span<const float> rows, std::span<double> sums) const {
  HONE_ASSERT(sums.empty() || rows.size() % sums.size() == 0, "rows are of one length");
  const size_t width = sums.empty() ? 0 : rows.size() / sums.size();
  std::fill(sums.begin(), sums.end(), 0.0);
  // Tree by tree, so that its nodes are at hand for all rows; several rows side by side, without
  // branches: what one waits for, the others use.
  for (size_t tree = 0; tree < roots_.size(); ++tree) {
    size_t row = 0;
    for (; row + kTogether <= sums.size(); row += kTogether) {
      std::array<int32_t, kTogether> at;
      at.fill(roots_[tree]);
      for (int32_t level = 0; level < levels_[tree]; ++level) {
        for (size_t i = 0; i < kTogether; ++i)
          at[i] = next_node(nodes_.data(), at[i], rows.data() + (row + i) * width);
      }
      for (size_t i = 0; i < kTogether; ++i)
        sums[row + i] += static_cast<double>(nodes_[static_cast<size_t>(at[i])].value);
    }
    for (; row < sums.size(); ++row) {
      int32_t at = roots_[tree];
      while (nodes_[static_cast<size_t>(at)].feature >= 0)
        at = next_node(nodes_.data(), at, rows.data() + row * width);
      sums[row] += static_cast<double>(nodes_[static_cast<size_t>(at)].value);
    }
  }
}

std::string Trees::format() const {
  std::string text;
  size_t next = 1;  // of the roots
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const TreeNode& node = nodes_[i];
    if (node.feature >= 0) fmt::format_to(std::back_inserter(text), "{}<", node.feature);
    fmt::format_to(std::back_inserter(text), "{}", node.value);
    const size_t end = next < roots_.size() ? static_cast<size_t>(roots_[next]) : nodes_.size();
    const bool is_last = i + 1 == end;
    text += is_last ? '\n' : ' ';
    next += is_last ? 1 : 0;
  }
  return text;
}

Result<Trees> Trees::parse(std::string_view text, int num_features) {
  Trees trees;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return invalid("the last tree has no end of line");
    std::vector<TreeNode> tree;
    const Status status = LineParser(text.substr(0, end), num_features, tree).tree();
    if (!status.ok()) return invalid("tree {}: {}", trees.size() + 1, status.message());
    trees.add(tree);
    text.remove_prefix(end + 1);
  }
  return trees;
}

}  // namespace hone::cost
