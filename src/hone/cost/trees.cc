#include "hone/cost/trees.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>

#include "hone/base/assert.h"

namespace hone::cost {
namespace {

constexpr int kMaxDepth = 64;
constexpr size_t kTogether = 16;  // trees that a row walks through at a time

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

}  // namespace

std::vector<TreeNode> in_preorder(const TreeArrays& tree) {
  std::vector<TreeNode> nodes;
  append(tree, 0, nodes);
  return nodes;
}

int32_t Trees::levels_below(size_t at) const {
  const Walked& node = nodes_[at];
  if (is_leaf(node)) return 0;
  const size_t right = at + 1 + static_cast<size_t>(node.skipped);
  return 1 + std::max(levels_below(at + 1), levels_below(right));
}

void Trees::add(std::span<const TreeNode> tree) {
  HONE_ASSERT(!tree.empty(), "a tree has a node");
  const size_t root = nodes_.size();
  roots_.push_back(root);
  for (size_t i = 0; i < tree.size(); ++i) {
    const TreeNode& node = tree[i];
    const bool leaf = node.feature < 0;
    if (leaf)
      nodes_.push_back({-std::numeric_limits<float>::infinity(), 0, -1});
    else
      nodes_.push_back({node.value, node.feature, node.right - static_cast<int32_t>(i) - 1});
    values_.push_back(leaf ? node.value : 0);
  }
  levels_.push_back(levels_below(root));
}

void Trees::append(const Trees& others) {
  const size_t shift = nodes_.size();
  for (const size_t root : others.roots_) roots_.push_back(root + shift);
  nodes_.insert(nodes_.end(), others.nodes_.begin(), others.nodes_.end());
  values_.insert(values_.end(), others.values_.begin(), others.values_.end());
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
  // A few trees at a time, whose nodes are at hand for all rows; side by side and without branches:
  // what one waits for, the others use.
  for (size_t first = 0; first < roots_.size(); first += kTogether) {
    const size_t count = std::min(kTogether, roots_.size() - first);
    std::array<const Walked*, kTogether> roots;
    int32_t levels = 0;
    for (size_t i = 0; i < kTogether; ++i) {
      const size_t tree = first + std::min(i, count - 1);
      roots[i] = &nodes_[roots_[tree]];
      levels = std::max(levels, levels_[tree]);
    }
    for (size_t row = 0; row < sums.size(); ++row) {
      const float* const features = rows.data() + row * width;
      std::array<const Walked*, kTogether> at = roots;
      for (int32_t level = 0; level < levels; ++level) {
        for (const Walked*& node : at) {
          const ptrdiff_t right =
              static_cast<ptrdiff_t>(features[node->feature] < node->threshold) - 1;
          node += 1 + (node->skipped & right);  // right: all bits or none
        }
      }
      for (size_t i = 0; i < count; ++i)
        sums[row] += static_cast<double>(values_[static_cast<size_t>(at[i] - nodes_.data())]);
    }
  }
}

std::string Trees::format() const {
  std::string text;
  size_t next = 1;  // index of the next root
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Walked& node = nodes_[i];
    if (is_leaf(node))
      fmt::format_to(std::back_inserter(text), "{}", values_[i]);
    else
      fmt::format_to(std::back_inserter(text), "{}<{}", node.feature, node.threshold);
    const size_t end = next < roots_.size() ? roots_[next] : nodes_.size();
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
