#include "hone/graph/fuse.h"

#include <algorithm>
#include <tuple>

#include "hone/graph/op.h"

namespace hone::graph {
namespace {

class Fuser {
 public:
  Fuser(const Graph& graph, const FuseOptions& options)
      : graph_(graph), options_(options), uses_(graph), group_of_(graph.nodes.size(), -1) {}

  std::vector<std::vector<int>> run() {
    // Anchors with the largest weights first, then the later ones: of two convolutions that meet in
    // a residual addition the heavier takes it, as it does where the other one is missing, so that
    // both blocks have the same task. Elementwise chains that no anchor took come last, in order.
    std::vector<int> anchors;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (node(static_cast<int>(i)).op->kind != Kind::kView) anchors.push_back(static_cast<int>(i));
    }
    std::sort(anchors.begin(), anchors.end(),
              [this](int a, int b) { return priority(a) < priority(b); });
    for (const int anchor : anchors) {
      if (group_of_[static_cast<size_t>(anchor)] < 0) grow(anchor);
    }
    if (options_.join) join_groups();
    std::erase_if(groups_, [](const auto& group) { return group.empty(); });
    std::sort(groups_.begin(), groups_.end(),
              [](const auto& a, const auto& b) { return a.back() < b.back(); });
    return std::move(groups_);
  }

 private:
  // A window of one element, on every place: a matrix product over the channels.
  bool is_pointwise_convolution(const Node& n) const {
    if (n.type != "Conv" || n.attributes.integer("group", 1) != 1) return false;
    const Shape& data = graph_.value(n.inputs[0]).shape;
    const Shape& weight = graph_.value(n.inputs[1]).shape;
    const Shape& result = graph_.value(n.outputs[0]).shape;
    return std::all_of(weight.begin() + 2, weight.end(), [](int64_t k) { return k == 1; }) &&
           std::equal(data.begin() + 2, data.end(), result.begin() + 2, result.end());
  }
  bool is_depthwise_convolution(const Node& n) const {
    return n.type == "Conv" && graph_.value(n.inputs[1]).shape[1] == 1 &&
           n.attributes.integer("group", 1) > 1 &&
           n.attributes.integer("group", 1) == graph_.value(n.inputs[1]).shape[0];
  }

  void join_groups() {
    for (std::vector<int>& second : groups_) {
      if (second.empty() || !is_pointwise_convolution(node(second.front()))) continue;
      const ValueId between = node(second.front()).inputs[0];
      const int producer = uses_.producer[static_cast<size_t>(between)];
      if (producer < 0 || uses_.output[static_cast<size_t>(between)] ||
          uses_.readers[static_cast<size_t>(between)].size() != 1)
        continue;
      const int of = group_of_[static_cast<size_t>(producer)];
      if (of < 0) continue;  // a view
      std::vector<int>& first = groups_[static_cast<size_t>(of)];
      if (first.empty() || first.back() != producer ||
          !is_depthwise_convolution(node(first.front())) || !options_.join(first, second))
        continue;
      second.insert(second.begin(), first.begin(), first.end());
      first.clear();
    }
  }

  const Node& node(int i) const { return graph_.nodes[static_cast<size_t>(i)]; }

  // Smaller comes first.
  std::tuple<bool, int64_t, int> priority(int i) const {
    const Node& n = node(i);
    if (n.op->kind == Kind::kElementwise) return {true, 0, i};
    const bool weighted = n.op->kind == Kind::kContraction && n.has_input(1);
    return {false, weighted ? -num_elements(graph_.value(n.inputs[1]).shape) : 0, -i};
  }

  // Returns whether a node may be a fill behind the sizes of a run, of what a reduction made. Apart
  // from it, the reduction leaves out the rows that the fill replaces.
  bool cuts_rows(int anchor, int i) const {
    return node(anchor).type.starts_with("Reduce") && node(i).type == "Where" &&
           !graph_.value(node(i).outputs[0]).forms.empty();
  }

  // Elementwise, of the group's shape, free, and with nothing but elementwise reads of the group.
  bool can_follow(int i, const Shape& shape) const {
    const Node& n = node(i);
    if (n.op->kind != Kind::kElementwise || group_of_[static_cast<size_t>(i)] >= 0) return false;
    return n.outputs.size() == 1 && graph_.value(n.outputs[0]).shape == shape;
  }

  // Returns whether operands that are not read pointwise (a BatchNormalization's scale) come from
  // outside.
  bool reads_pointwise(int i, const std::vector<int>& group, const Shape& shape) const {
    for (const ValueId in : node(i).inputs) {
      if (in == kNoValue) continue;
      const int producer = uses_.producer[static_cast<size_t>(in)];
      const bool inside = std::count(group.begin(), group.end(), producer) > 0;
      if (inside && graph_.value(in).shape != shape) return false;
    }
    return true;
  }

  // Takes followers in topological order, and keeps the longest prefix of which only the last
  // value is visible: x * sigmoid(x) is taken whole or not at all.
  void grow(int anchor) {
    std::vector<int> group = {anchor};
    size_t complete = 1;
    const ValueId first = node(anchor).outputs[0];
    const Shape& shape = graph_.value(first).shape;
    const bool fusible = node(anchor).op->kind != Kind::kOpaque && node(anchor).outputs.size() == 1;
    while (fusible && static_cast<int>(group.size()) <= options_.max_followers) {
      int next = -1;
      for (const int member : group) {
        for (const int reader : uses_.readers[static_cast<size_t>(node(member).outputs[0])]) {
          if (std::count(group.begin(), group.end(), reader) > 0 || !can_follow(reader, shape))
            continue;
          if (!reads_pointwise(reader, group, shape) || cuts_rows(anchor, reader)) continue;
          if (next < 0 || reader < next) next = reader;
        }
      }
      if (next < 0) break;
      group.push_back(next);
      if (only_last_visible(group)) complete = group.size();
    }
    group.resize(complete);
    for (const int i : group) group_of_[static_cast<size_t>(i)] = static_cast<int>(groups_.size());
    groups_.push_back(std::move(group));
  }

  bool only_last_visible(const std::vector<int>& group) const {
    std::vector<int> others(group.begin(), group.end() - 1);
    for (const int i : others) {
      const ValueId out = node(i).outputs[0];
      if (uses_.output[static_cast<size_t>(out)]) return false;
      for (const int reader : uses_.readers[static_cast<size_t>(out)]) {
        if (std::count(group.begin(), group.end(), reader) == 0) return false;
      }
    }
    return true;
  }

  const Graph& graph_;
  const FuseOptions& options_;
  const Uses uses_;
  std::vector<int> group_of_;
  std::vector<std::vector<int>> groups_;
};

}  // namespace

std::vector<std::vector<int>> fuse(const Graph& graph, const FuseOptions& options) {
  return Fuser(graph, options).run();
}

}  // namespace hone::graph
