#include "hone/cost/trees.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <iterator>

#include "hone/base/assert.h"

namespace hone::cost {
namespace {

constexpr int kMaxDepth = 64;

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

void Trees::add(std::span<const TreeNode> tree) {
  HONE_ASSERT(!tree.empty(), "a tree has a node");
  const auto root = static_cast<int32_t>(nodes_.size());
  roots_.push_back(root);
  for (TreeNode node : tree) {
    if (node.feature >= 0) node.right += root;
    nodes_.push_back(node);
  }
}

double Trees::predict(std::span<const float> features) const {
  double sum = 0;
  for (const int32_t root : roots_) {
    const TreeNode* node = &nodes_[static_cast<size_t>(root)];
    while (node->feature >= 0) {
      const bool below = features[static_cast<size_t>(node->feature)] < node->value;
      node = below ? node + 1 : &nodes_[static_cast<size_t>(node->right)];
    }
    sum += static_cast<double>(node->value);
  }
  return sum;
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
