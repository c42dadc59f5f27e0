// The text of LightGBM's models: blocks of "key=value" lines, "Tree=N" first, an empty line after
// each. Inner nodes and leaves have indices of their own; a child below 0 is the leaf ~child.
#include <charconv>
#include <cmath>
#include <limits>
#include <map>

#include "hone/cost/lightgbm.h"

namespace hone::cost {
namespace {

using Fields = std::map<std::string_view, std::string_view>;

// The bits of decision_type.
constexpr int kCategorical = 1;
constexpr int kMissing = 12;  // bit 2 (default left) says where missing values go

Status unknown(std::string_view what) {
  return error(Code::kUnsupported, "LightGBM wrote a model of an unknown form: {}", what);
}

// Takes what is before `end` off the text, and `end`.
std::string_view take(std::string_view& text, char end) {
  const size_t at = text.find(end);
  const std::string_view found = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return found;
}

template <typename T>
Result<std::vector<T>> numbers(const Fields& fields, std::string_view key, size_t count) {
  const auto found = fields.find(key);
  std::string_view rest = found == fields.end() ? "" : found->second;
  std::vector<T> values;
  while (!rest.empty()) {
    const std::string_view word = take(rest, ' ');
    T value{};
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
    if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size())
      return unknown(fmt::format("{}={}", key, word));
    values.push_back(value);
  }
  if (values.size() != count)
    return unknown(fmt::format("{} numbers of {}, expected {}", values.size(), key, count));
  return values;
}

Status check_zero(const Fields& fields, std::string_view key) {
  if (!fields.contains(key)) return ok_status();  // the file is of an older version
  HONE_ASSIGN_OR_RETURN(const std::vector<int> value, numbers<int>(fields, key, 1));
  return value[0] == 0 ? ok_status() : unknown(fmt::format("{}={}", key, value[0]));
}

Result<float> to_float(double value) {
  if (!(std::abs(value) < std::numeric_limits<float>::max()))
    return unknown(fmt::format("the number {}", value));
  return static_cast<float>(value);
}

// LightGBM goes left if x <= threshold, our trees if x < value: the least float above the threshold
// makes the same of every float x.
Result<float> to_strict(double threshold) {
  HONE_ASSIGN_OR_RETURN(const float nearest, to_float(threshold));
  if (static_cast<double>(nearest) > threshold) return nearest;
  return std::nextafter(nearest, std::numeric_limits<float>::infinity());
}

// The inner nodes of a block, then its leaves.
Result<TreeArrays> parse_tree(const Fields& fields, int num_features) {
  HONE_ASSIGN_OR_RETURN(const std::vector<int> leaves, numbers<int>(fields, "num_leaves", 1));
  if (leaves[0] < 1) return unknown(fmt::format("num_leaves={}", leaves[0]));
  HONE_RETURN_IF_ERROR(check_zero(fields, "num_cat"));
  HONE_RETURN_IF_ERROR(check_zero(fields, "is_linear"));
  const auto num_leaves = static_cast<size_t>(leaves[0]);
  const size_t inner = num_leaves - 1;
  TreeArrays tree;
  HONE_ASSIGN_OR_RETURN(tree.feature, numbers<int>(fields, "split_feature", inner));
  HONE_ASSIGN_OR_RETURN(tree.left, numbers<int>(fields, "left_child", inner));
  HONE_ASSIGN_OR_RETURN(tree.right, numbers<int>(fields, "right_child", inner));
  HONE_ASSIGN_OR_RETURN(const auto kinds, numbers<int>(fields, "decision_type", inner));
  HONE_ASSIGN_OR_RETURN(const auto thresholds, numbers<double>(fields, "threshold", inner));
  HONE_ASSIGN_OR_RETURN(const auto values, numbers<double>(fields, "leaf_value", num_leaves));
  std::vector<bool> seen(inner + num_leaves);
  // A child is a later inner node or a leaf, and of one node only.
  const auto attach = [&](size_t parent, int& child) {
    const bool leaf = child < 0;
    const size_t node = leaf ? inner + static_cast<size_t>(~child) : static_cast<size_t>(child);
    if (node <= parent || node >= (leaf ? seen.size() : inner) || seen[node]) return false;
    seen[node] = true;
    child = static_cast<int>(node);
    return true;
  };
  for (size_t i = 0; i < inner; ++i) {
    if (tree.feature[i] < 0 || tree.feature[i] >= num_features)
      return unknown(fmt::format("split_feature={}", tree.feature[i]));
    if ((kinds[i] & (kCategorical | kMissing)) != 0)
      return unknown(fmt::format("decision_type={}", kinds[i]));
    if (!attach(i, tree.left[i]) || !attach(i, tree.right[i]))
      return unknown(fmt::format("the children of node {}", i));
    HONE_ASSIGN_OR_RETURN(const float value, to_strict(thresholds[i]));
    tree.value.push_back(value);
  }
  for (const double leaf : values) {
    HONE_ASSIGN_OR_RETURN(const float value, to_float(leaf));
    tree.value.push_back(value);
  }
  tree.left.resize(seen.size(), -1);
  tree.right.resize(seen.size(), -1);
  tree.feature.resize(seen.size(), -1);
  return tree;
}

}  // namespace

Result<Trees> parse_lightgbm(std::string_view text, int num_features) {
  if (!text.starts_with("tree\n")) return unknown("no first line 'tree'");
  Trees trees;
  while (!text.empty()) {
    const std::string_view line = take(text, '\n');
    if (line == "end of trees") return trees;
    if (!line.starts_with("Tree=")) continue;
    Fields fields;
    while (!text.empty()) {
      std::string_view value = take(text, '\n');
      if (value.empty()) break;
      const std::string_view key = take(value, '=');
      fields[key] = value;
    }
    HONE_ASSIGN_OR_RETURN(const TreeArrays tree, parse_tree(fields, num_features));
    trees.add(in_preorder(tree));
  }
  return unknown("no line 'end of trees'");
}

}  // namespace hone::cost
