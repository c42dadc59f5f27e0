#include "hone/graph/ops/ml_tree_ensemble.h"

#include <cmath>
#include <map>
#include <set>

namespace hone::graph {
namespace {

std::vector<double> numbers(const ExpandContext& c, const std::string& name) {
  std::vector<double> list;
  if (const auto* tensor = c.attributes().find<Tensor>(name + "_as_tensor")) {
    for (int64_t i = 0; i < tensor->size(); ++i) list.push_back(tensor->at(i));
  } else {
    for (const float x : c.attributes().get<std::vector<float>>(name, {}))
      list.push_back(static_cast<double>(x));
  }
  return list;
}

bool is_double(const ExpandContext& c, const char* name) {
  const auto* tensor = c.attributes().find<Tensor>(name);
  return tensor != nullptr && tensor->dtype() == DType::kF64;
}

// The form of before version 5: nodes by tree and number, weights by these.
class ListedTrees {
 public:
  ListedTrees(const ExpandContext& c, const std::string& weights) : c_(c), prefix_(weights) {}

  Result<TreeEnsemble> read() {
    ids_ = integers("nodes_nodeids");
    trees_ = integers("nodes_treeids");
    const auto features = integers("nodes_featureids");
    const auto on_true = integers("nodes_truenodeids"), on_false = integers("nodes_falsenodeids");
    const auto missing = integers("nodes_missing_value_tracks_true");
    const auto modes = c_.attributes().get<std::vector<std::string>>("nodes_modes", {});
    const auto splits = numbers(c_, "nodes_values");
    const size_t count = ids_.size();
    if (count == 0 || trees_.size() != count || features.size() != count ||
        on_true.size() != count || on_false.size() != count || modes.size() != count ||
        splits.size() != count || (!missing.empty() && missing.size() != count))
      return c_.fail("lists of nodes of {} and other lengths", count);
    for (size_t i = 0; i < count; ++i) {
      if (!places_.emplace(std::pair(trees_[i], ids_[i]), static_cast<int64_t>(i)).second)
        return c_.fail("node {} of tree {} is there twice", ids_[i], trees_[i]);
    }
    std::set<int64_t> seen;
    for (size_t i = 0; i < count; ++i) {
      HONE_ASSIGN_OR_RETURN(TreeNode node, read_node(i, modes[i], on_true[i], on_false[i]));
      node.feature = features[i];
      node.split = splits[i];
      node.missing_is_true = !missing.empty() && missing[i] != 0;
      made_.nodes.push_back(node);
      if (seen.insert(trees_[i]).second) made_.roots.push_back(static_cast<int64_t>(i));
    }
    if (is_double(c_, "nodes_values_as_tensor")) made_.type = DType::kF64;
    HONE_RETURN_IF_ERROR(read_weights());
    return std::move(made_);
  }

 private:
  [[nodiscard]] std::vector<int64_t> integers(const std::string& name) const {
    return c_.attributes().integers(name);
  }

  Result<int64_t> place(int64_t tree, int64_t id) const {
    const auto it = places_.find({tree, id});
    if (it == places_.end()) return c_.fail("tree {} has no node {}", tree, id);
    return it->second;
  }

  Result<TreeNode> read_node(size_t i, const std::string& mode, int64_t on_true, int64_t on_false) {
    static const std::map<std::string, TreeMode> kModes = {
        {"BRANCH_LEQ", TreeMode::kLeq}, {"BRANCH_LT", TreeMode::kLt},
        {"BRANCH_GTE", TreeMode::kGte}, {"BRANCH_GT", TreeMode::kGt},
        {"BRANCH_EQ", TreeMode::kEq},   {"BRANCH_NEQ", TreeMode::kNeq},
        {"LEAF", TreeMode::kLeaf}};
    const auto found = kModes.find(mode);
    if (found == kModes.end()) return c_.fail("a node of mode '{}'", mode);
    TreeNode node = {.mode = found->second};
    if (node.mode == TreeMode::kLeaf) return node;
    HONE_ASSIGN_OR_RETURN(node.on_true, place(trees_[i], on_true));
    HONE_ASSIGN_OR_RETURN(node.on_false, place(trees_[i], on_false));
    return node;
  }

  Status read_weights() {
    const auto targets = integers(prefix_ + "_ids"), nodes = integers(prefix_ + "_nodeids");
    const auto trees = integers(prefix_ + "_treeids");
    const auto weights = numbers(c_, prefix_ + "_weights");
    if (targets.size() != weights.size() || nodes.size() != weights.size() ||
        trees.size() != weights.size())
      return c_.fail("lists of weights of {} and other lengths", weights.size());
    for (size_t i = 0; i < weights.size(); ++i) {
      HONE_ASSIGN_OR_RETURN(const int64_t node, place(trees[i], nodes[i]));
      made_.weights.push_back({node, targets[i], weights[i]});
    }
    made_.base = numbers(c_, "base_values");
    return ok_status();
  }

  const ExpandContext& c_;
  std::string prefix_;  // of the attributes that have the weights: "target" or "class"
  std::vector<int64_t> ids_, trees_;
  std::map<std::pair<int64_t, int64_t>, int64_t> places_;  // by tree and number
  TreeEnsemble made_;
};

// The form of version 5: inner nodes and leaves in lists of their own.
class SplitTrees {
 public:
  explicit SplitTrees(const ExpandContext& c) : c_(c) {}

  Result<TreeEnsemble> read() {
    const Attributes& a = c_.attributes();
    const auto *splits = a.find<Tensor>("nodes_splits"), *modes = a.find<Tensor>("nodes_modes");
    const auto* weights = a.find<Tensor>("leaf_weights");
    if (splits == nullptr || modes == nullptr || weights == nullptr)
      return c_.fail("nodes_splits, nodes_modes or leaf_weights are missing");
    const auto features = a.integers("nodes_featureids"), targets = a.integers("leaf_targetids");
    const auto missing = a.integers("nodes_missing_value_tracks_true");
    inner_ = splits->size();
    leaves_ = weights->size();
    if (std::ssize(features) != inner_ || modes->size() != inner_ ||
        std::ssize(targets) != leaves_ || (!missing.empty() && std::ssize(missing) != inner_))
      return c_.fail("lists of nodes of {} and other lengths", inner_);
    made_.type = splits->dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
    made_.nodes.resize(static_cast<size_t>(inner_ + leaves_));
    read_members();
    HONE_ASSIGN_OR_RETURN(const auto on_true, children("nodes_truenodeids", "nodes_trueleafs"));
    HONE_ASSIGN_OR_RETURN(const auto on_false, children("nodes_falsenodeids", "nodes_falseleafs"));
    for (int64_t i = 0; i < inner_; ++i) {
      const auto at = static_cast<size_t>(i);
      TreeNode node = {.feature = features[at],
                       .split = splits->at(i),
                       .on_true = on_true[at],
                       .on_false = on_false[at],
                       .missing_is_true = !missing.empty() && missing[at] != 0};
      const double mode = modes->at(i);
      if (!(mode >= 0 && mode <= 6)) return c_.fail("a node of mode {}", mode);
      node.mode = static_cast<TreeMode>(static_cast<int>(mode));
      HONE_RETURN_IF_ERROR(put(i, node));
    }
    for (int64_t i = 0; i < leaves_; ++i)
      made_.weights.push_back({inner_ + i, targets[static_cast<size_t>(i)], weights->at(i)});
    made_.roots = a.integers("tree_roots");
    for (const int64_t root : made_.roots) {
      if (root < 0 || root >= inner_) return c_.fail("a tree's root is node {}", root);
    }
    return std::move(made_);
  }

 private:
  // Returns the places of the nodes' children, those that are leaves behind the inner nodes.
  Result<std::vector<int64_t>> children(const char* ids, const char* leaves) const {
    std::vector<int64_t> places = c_.attributes().integers(ids);
    const auto is_leaf = c_.attributes().integers(leaves);
    if (std::ssize(places) != inner_ || std::ssize(is_leaf) != inner_)
      return c_.fail("{} nodes in {}, expected {}", places.size(), ids, inner_);
    for (size_t i = 0; i < places.size(); ++i) {
      const bool leaf = is_leaf[i] != 0;
      if (places[i] < 0 || places[i] >= (leaf ? leaves_ : inner_))
        return c_.fail("{} names node {}", ids, places[i]);
      if (leaf) places[i] += inner_;
    }
    return places;
  }

  // Sets of values, one per node of the mode MEMBER, with NaN between them.
  void read_members() {
    members_.emplace_back();
    const auto* values = c_.attributes().find<Tensor>("membership_values");
    for (int64_t i = 0; values != nullptr && i < values->size(); ++i) {
      if (std::isnan(values->at(i)))
        members_.emplace_back();
      else
        members_.back().push_back(values->at(i));
    }
  }

  // A node of the mode MEMBER is a chain of comparisons.
  Status put(int64_t at, TreeNode node) {
    if (node.mode != TreeMode::kMember) {
      made_.nodes[static_cast<size_t>(at)] = node;
      return ok_status();
    }
    if (next_member_ >= members_.size() || members_[next_member_].empty())
      return c_.fail("node {} has no membership_values", at);
    const std::vector<double>& values = members_[next_member_++];
    const int64_t otherwise = node.on_false;
    node.mode = TreeMode::kEq;
    for (size_t k = 0; k < values.size(); ++k) {
      node.split = values[k];
      const bool last = k + 1 == values.size();
      node.on_false = last ? otherwise : std::ssize(made_.nodes) + (k == 0 ? 0 : 1);
      if (k == 0) {
        made_.nodes[static_cast<size_t>(at)] = node;
      } else {
        made_.nodes.push_back(node);
      }
    }
    return ok_status();
  }

  const ExpandContext& c_;
  int64_t inner_ = 0, leaves_ = 0;
  std::vector<std::vector<double>> members_;
  size_t next_member_ = 0;
  TreeEnsemble made_;
};

}  // namespace

Result<TreeEnsemble> read_listed_trees(const ExpandContext& c, const std::string& weights) {
  return ListedTrees(c, weights).read();
}

Result<TreeEnsemble> read_split_trees(const ExpandContext& c) { return SplitTrees(c).read(); }

}  // namespace hone::graph
