// Trees of ai.onnx.ml: TreeEnsemble, TreeEnsembleRegressor and TreeEnsembleClassifier. All trees go
// down one level at a time, by tables of the nodes: [rows, trees] of places.
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "hone/graph/ops/ml.h"

namespace hone::graph {
namespace {

constexpr int64_t kMaxNodes = 10'000'000;
constexpr int64_t kMaxDepth = 1000;

enum class Mode : uint8_t { kLeq, kLt, kGte, kGt, kEq, kNeq, kMember, kLeaf };

struct TreeNode {
  Mode mode = Mode::kLeaf;
  int64_t feature = 0;
  double split = 0;
  int64_t on_true = -1, on_false = -1;
  bool missing_is_true = false;  // a value that is not a number goes the way of `true`
};

// What a leaf gives to a target.
struct Weight {
  int64_t node, target;
  double value;
};

struct Ensemble {
  std::vector<TreeNode> nodes;
  std::vector<int64_t> roots;
  std::vector<Weight> weights;
  int64_t targets = 1;
  std::string aggregate = "SUM";
  std::vector<double> base;  // nothing, one for all targets, or one per target
  DType type = DType::kF32;  // of splits and weights
};

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

  Result<Ensemble> read() {
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
    static const std::map<std::string, Mode> kModes = {
        {"BRANCH_LEQ", Mode::kLeq}, {"BRANCH_LT", Mode::kLt}, {"BRANCH_GTE", Mode::kGte},
        {"BRANCH_GT", Mode::kGt},   {"BRANCH_EQ", Mode::kEq}, {"BRANCH_NEQ", Mode::kNeq},
        {"LEAF", Mode::kLeaf}};
    const auto found = kModes.find(mode);
    if (found == kModes.end()) return c_.fail("a node of mode '{}'", mode);
    TreeNode node = {.mode = found->second};
    if (node.mode == Mode::kLeaf) return node;
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
  Ensemble made_;
};

// The form of version 5: inner nodes and leaves in lists of their own.
class SplitTrees {
 public:
  explicit SplitTrees(const ExpandContext& c) : c_(c) {}

  Result<Ensemble> read() {
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
    for (int64_t i = 0; i < inner_; ++i) {
      TreeNode node = {.feature = features[static_cast<size_t>(i)], .split = splits->at(i)};
      const double mode = modes->at(i);
      if (!(mode >= 0 && mode <= 6)) return c_.fail("a node of mode {}", mode);
      node.mode = static_cast<Mode>(static_cast<int>(mode));
      HONE_ASSIGN_OR_RETURN(node.on_true, child("nodes_truenodeids", "nodes_trueleafs", i));
      HONE_ASSIGN_OR_RETURN(node.on_false, child("nodes_falsenodeids", "nodes_falseleafs", i));
      node.missing_is_true = !missing.empty() && missing[static_cast<size_t>(i)] != 0;
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
  Result<int64_t> child(const char* ids, const char* leaves, int64_t i) const {
    const auto list = c_.attributes().integers(ids), is_leaf = c_.attributes().integers(leaves);
    if (std::ssize(list) != inner_ || std::ssize(is_leaf) != inner_)
      return c_.fail("{} nodes in {}, expected {}", list.size(), ids, inner_);
    const int64_t id = list[static_cast<size_t>(i)];
    const bool leaf = is_leaf[static_cast<size_t>(i)] != 0;
    if (id < 0 || id >= (leaf ? leaves_ : inner_)) return c_.fail("{} names node {}", ids, id);
    return leaf ? inner_ + id : id;
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
    if (node.mode != Mode::kMember) {
      made_.nodes[static_cast<size_t>(at)] = node;
      return ok_status();
    }
    if (next_member_ >= members_.size() || members_[next_member_].empty())
      return c_.fail("node {} has no membership_values", at);
    const std::vector<double>& values = members_[next_member_++];
    const int64_t otherwise = node.on_false;
    node.mode = Mode::kEq;
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
  Ensemble made_;
};

// Goes down all trees for all rows and adds up the leaves.
class Descent {
 public:
  Descent(ExpandContext& c, const Ensemble& trees) : c_(c), trees_(trees) {}

  // Returns the scores [rows, targets].
  Result<ValueId> run() {
    if (c_.extents_of(c_.input(0)) != kNoValue)
      return c_.unsupported("data whose shape depends on other data");
    HONE_ASSIGN_OR_RETURN(x_, ml_rows(c_, true));
    if (trees_.type == DType::kF64) x_ = c_.cast(x_, DType::kF64);
    HONE_ASSIGN_OR_RETURN(const int64_t depth, check());
    rows_ = c_.shape_of(x_)[0];
    const auto count = std::ssize(trees_.roots);
    place_ = c_.add("Expand", {c_.integers(trees_.roots), c_.integers({rows_, count})});
    make_tables();
    for (int64_t level = 0; level < depth && c_.status().ok(); ++level) step();
    HONE_RETURN_IF_ERROR(c_.status());
    return sum();
  }

 private:
  // Returns how many steps the deepest tree takes.
  Result<int64_t> check() {
    const int64_t features = c_.shape_of(x_)[1];
    if (std::ssize(trees_.nodes) > kMaxNodes || trees_.roots.empty())
      return c_.unsupported("{} trees of {} nodes, expected 1 to {}", trees_.roots.size(),
                            trees_.nodes.size(), kMaxNodes);
    for (const Weight& weight : trees_.weights) {
      if (weight.target < 0 || weight.target >= trees_.targets)
        return c_.fail("a weight of target {}, expected 0 to {}", weight.target,
                       trees_.targets - 1);
    }
    std::vector<int64_t> level = trees_.roots;
    for (int64_t depth = 0;; ++depth) {
      std::set<int64_t> next;
      for (const int64_t at : level) {
        const TreeNode& node = trees_.nodes[static_cast<size_t>(at)];
        if (node.mode == Mode::kLeaf) continue;
        if (node.feature < 0 || node.feature >= features)
          return c_.fail("a node reads feature {} of {}", node.feature, features);
        next.insert(node.on_true);
        next.insert(node.on_false);
      }
      if (next.empty()) return depth;
      if (depth >= kMaxDepth)
        return c_.unsupported("trees deeper than {}, or whose nodes lead to themselves", kMaxDepth);
      level.assign(next.begin(), next.end());
    }
  }

  template <typename F>
  ValueId table(DType type, const F& of_node) {
    Tensor tensor(type, {std::ssize(trees_.nodes)});
    for (size_t i = 0; i < trees_.nodes.size(); ++i)
      tensor.set(static_cast<int64_t>(i),
                 static_cast<double>(of_node(trees_.nodes[i], static_cast<int64_t>(i))));
    return c_.constant(std::move(tensor));
  }

  void make_tables() {
    const auto leaf = [](const TreeNode& n) { return n.mode == Mode::kLeaf; };
    features_ =
        table(DType::kI64, [&](const TreeNode& n, int64_t) { return leaf(n) ? 0 : n.feature; });
    splits_ = table(c_.dtype_of(x_), [](const TreeNode& n, int64_t) { return n.split; });
    on_true_ =
        table(DType::kI64, [&](const TreeNode& n, int64_t i) { return leaf(n) ? i : n.on_true; });
    on_false_ =
        table(DType::kI64, [&](const TreeNode& n, int64_t i) { return leaf(n) ? i : n.on_false; });
    bool any_missing = false;
    for (const TreeNode& node : trees_.nodes) {
      if (!leaf(node)) modes_.insert(node.mode);
      any_missing |= node.missing_is_true;
    }
    if (modes_.size() > 1)
      mode_ =
          table(DType::kI32, [](const TreeNode& n, int64_t) { return static_cast<int>(n.mode); });
    if (any_missing)
      missing_ = table(DType::kBool, [](const TreeNode& n, int64_t) { return n.missing_is_true; });
  }

  ValueId at_place(ValueId of_nodes) {
    return c_.add("Gather", {of_nodes, place_}, {{"axis", int64_t{0}}});
  }

  ValueId compared(Mode mode, ValueId x, ValueId split) {
    switch (mode) {
      case Mode::kLeq: return c_.binary("LessOrEqual", x, split);
      case Mode::kLt: return c_.binary("Less", x, split);
      case Mode::kGte: return c_.binary("GreaterOrEqual", x, split);
      case Mode::kGt: return c_.binary("Greater", x, split);
      case Mode::kNeq: return c_.add("Not", {c_.binary("Equal", x, split)});
      default: return c_.binary("Equal", x, split);
    }
  }

  void step() {
    const ValueId x = c_.add("GatherElements", {x_, at_place(features_)}, {{"axis", int64_t{1}}});
    const ValueId split = at_place(splits_);
    ValueId holds = kNoValue;
    for (const Mode mode : modes_) {
      const ValueId one = compared(mode, x, split);
      holds = holds == kNoValue
                  ? one
                  : c_.add("Where", {c_.binary("Equal", at_place(mode_), static_cast<double>(mode)),
                                     one, holds});
    }
    if (missing_ != kNoValue)
      holds = c_.binary("Or", holds, c_.binary("And", c_.add("IsNaN", {x}), at_place(missing_)));
    place_ = c_.add("Where", {holds, at_place(on_true_), at_place(on_false_)});
  }

  // What the leaves that were reached give to each target.
  Result<ValueId> sum() {
    const bool most = trees_.aggregate == "MAX", least = trees_.aggregate == "MIN";
    const double none = most    ? -std::numeric_limits<double>::infinity()
                        : least ? std::numeric_limits<double>::infinity()
                                : 0;
    const DType type = trees_.type;
    HONE_ASSIGN_OR_RETURN(Tensor weights,
                          c_.new_constant(type, {std::ssize(trees_.nodes), trees_.targets}));
    for (int64_t i = 0; i < weights.size(); ++i) weights.set(i, none);
    for (const Weight& weight : trees_.weights) {
      const int64_t at = weight.node * trees_.targets + weight.target;
      weights.set(at, most || least ? weight.value : weights.at(at) + weight.value);
    }
    const ValueId given =
        c_.add("Gather", {c_.constant(std::move(weights)), place_}, {{"axis", int64_t{0}}});
    ValueId y = c_.reduce(most    ? "ReduceMax"
                          : least ? "ReduceMin"
                                  : "ReduceSum",
                          given, {1}, false);
    if (trees_.aggregate == "AVERAGE")
      y = c_.binary("Div", y, static_cast<double>(trees_.roots.size()));
    ValueId with_base = y;
    if (!trees_.base.empty()) {
      HONE_ASSIGN_OR_RETURN(const ValueId base, base_values());
      with_base = c_.binary("Add", y, base);
    }
    if (!most && !least) return with_base;
    const ValueId untouched = c_.add("IsInf", {c_.cast(y, DType::kF32)});
    return c_.add("Where", {untouched, c_.scalar(type, 0), with_base});
  }

  Result<ValueId> base_values() {
    if (trees_.base.size() != 1 && std::ssize(trees_.base) != trees_.targets)
      return c_.fail("{} base_values for {} targets", trees_.base.size(), trees_.targets);
    Tensor base(trees_.type, {std::ssize(trees_.base)});
    for (size_t i = 0; i < trees_.base.size(); ++i)
      base.set(static_cast<int64_t>(i), trees_.base[i]);
    return c_.constant(std::move(base));
  }

  ExpandContext& c_;
  const Ensemble& trees_;
  ValueId x_ = kNoValue, place_ = kNoValue;
  ValueId features_ = kNoValue, splits_ = kNoValue, on_true_ = kNoValue, on_false_ = kNoValue;
  ValueId mode_ = kNoValue, missing_ = kNoValue;
  std::set<Mode> modes_;
  int64_t rows_ = 0;
};

Status check_aggregate(const ExpandContext& c, const std::string& name) {
  for (const char* known : {"SUM", "AVERAGE", "MIN", "MAX"}) {
    if (name == known) return ok_status();
  }
  return c.fail("aggregate_function is '{}'", name);
}

Status set_targets(ExpandContext& c, const Ensemble& trees, const std::string& transform,
                   DType type) {
  if (trees.targets < 1 || trees.targets > kMaxNodes)
    return c.fail("n_targets is {}", trees.targets);
  HONE_RETURN_IF_ERROR(check_aggregate(c, trees.aggregate));
  HONE_ASSIGN_OR_RETURN(const ValueId scores, Descent(c, trees).run());
  HONE_ASSIGN_OR_RETURN(const ValueId y, ml_transformed(c, scores, transform));
  c.result(0, c.cast(y, type));
  return ok_status();
}

Status expand_tree_regressor(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(Ensemble trees, ListedTrees(c, "target").read());
  trees.targets = c.attributes().integer("n_targets", 1);
  trees.aggregate = c.attributes().text("aggregate_function", "SUM");
  return set_targets(c, trees, c.attributes().text("post_transform", "NONE"), DType::kF32);
}

Status expand_tree_ensemble(ExpandContext& c) {
  static constexpr const char* kAggregates[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  static constexpr const char* kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO",
                                                "PROBIT"};
  HONE_ASSIGN_OR_RETURN(Ensemble trees, SplitTrees(c).read());
  const int64_t aggregate = c.attributes().integer("aggregate_function", 1);
  const int64_t transform = c.attributes().integer("post_transform", 0);
  if (aggregate < 0 || aggregate > 3 || transform < 0 || transform > 4)
    return c.fail("aggregate_function is {} and post_transform {}", aggregate, transform);
  trees.targets = c.attributes().integer("n_targets", 1);
  trees.aggregate = kAggregates[aggregate];
  return set_targets(c, trees, kTransforms[transform], trees.type);
}

// Where all weights are of one class of two, their sum decides: above 0.5 if no weight is negative,
// else above 0. Of the first class it stands for both scores; of the second it is that one's, and
// the other is 0.
Status set_two_classes(ExpandContext& c, Ensemble& trees, const std::vector<int64_t>& labels) {
  const bool of_first = trees.weights[0].target == 0;
  bool is_share = true;
  for (Weight& weight : trees.weights) {
    is_share &= weight.value >= 0;
    weight.target = 0;
  }
  if (trees.base.size() > (of_first ? 1 : 0))
    return c.unsupported("{} base_values where all weights are of one class", trees.base.size());
  trees.targets = 1;
  HONE_ASSIGN_OR_RETURN(const ValueId score, Descent(c, trees).run());
  const double threshold = is_share ? 0.5 : 0;
  if (of_first)
    return ml_set_binary(c, {.score = score, .threshold = threshold, .is_share = is_share}, labels);
  const int64_t rows = c.shape_of(score)[0];
  const ValueId second = c.reshape(c.binary("Greater", score, threshold), {rows});
  ml_set_labels(c, c.cast(second, DType::kI64), labels);
  const ValueId none = c.constant(Tensor(c.dtype_of(score), {rows, 1}));
  HONE_ASSIGN_OR_RETURN(const ValueId z,
                        ml_transformed(c, c.add("Concat", {none, score}, {{"axis", int64_t{1}}}),
                                       c.attributes().text("post_transform", "NONE")));
  c.result(1, c.cast(z, DType::kF32));
  return ok_status();
}

Status expand_tree_classifier(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const auto labels, ml_labels(c, "classlabels_int64s"));
  HONE_ASSIGN_OR_RETURN(Ensemble trees, ListedTrees(c, "class").read());
  std::set<int64_t> classes;
  for (const Weight& weight : trees.weights) classes.insert(weight.target);
  if (labels.size() == 2 && classes.size() == 1) return set_two_classes(c, trees, labels);
  trees.targets = std::ssize(labels);
  HONE_ASSIGN_OR_RETURN(const ValueId scores, Descent(c, trees).run());
  return ml_set_classes(c, scores, labels);
}

constexpr std::string_view kRegressor =
    "aggregate_function:s base_values:fs base_values_as_tensor:t n_targets:i nodes_falsenodeids:is "
    "nodes_featureids:is nodes_hitrates:fs nodes_hitrates_as_tensor:t "
    "nodes_missing_value_tracks_true:is nodes_modes:ss nodes_nodeids:is nodes_treeids:is "
    "nodes_truenodeids:is nodes_values:fs nodes_values_as_tensor:t post_transform:s target_ids:is "
    "target_nodeids:is target_treeids:is target_weights:fs target_weights_as_tensor:t";
constexpr std::string_view kClassifier =
    "base_values:fs base_values_as_tensor:t class_ids:is class_nodeids:is class_treeids:is "
    "class_weights:fs class_weights_as_tensor:t classlabels_int64s:is classlabels_strings:ss "
    "nodes_falsenodeids:is nodes_featureids:is nodes_hitrates:fs nodes_hitrates_as_tensor:t "
    "nodes_missing_value_tracks_true:is nodes_modes:ss nodes_nodeids:is nodes_treeids:is "
    "nodes_truenodeids:is nodes_values:fs nodes_values_as_tensor:t post_transform:s";
constexpr std::string_view kEnsemble =
    "aggregate_function:i leaf_targetids:is leaf_weights:t membership_values:t n_targets:i "
    "nodes_falseleafs:is nodes_falsenodeids:is nodes_featureids:is nodes_hitrates:t "
    "nodes_missing_value_tracks_true:is nodes_modes:t nodes_splits:t nodes_trueleafs:is "
    "nodes_truenodeids:is post_transform:i tree_roots:is";

}  // namespace

std::span<const Op> ml_tree_ops() {
  static const Op ops[] = {
      {.name = "ai.onnx.ml.TreeEnsembleRegressor",
       .attributes = kRegressor,
       .expand = expand_tree_regressor},
      {.name = "ai.onnx.ml.TreeEnsembleClassifier",
       .max_outputs = 2,
       .attributes = kClassifier,
       .expand = expand_tree_classifier},
      {.name = "ai.onnx.ml.TreeEnsemble", .attributes = kEnsemble, .expand = expand_tree_ensemble},
  };
  return ops;
}

}  // namespace hone::graph
