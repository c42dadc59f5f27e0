// Trees of ai.onnx.ml: TreeEnsemble, TreeEnsembleRegressor and TreeEnsembleClassifier. All trees go
// down one level at a time, by tables of the nodes: [rows, trees] of places.
#include <limits>
#include <set>

#include "hone/graph/ops/ml.h"
#include "hone/graph/ops/ml_tree_ensemble.h"

namespace hone::graph {
namespace {

constexpr int64_t kMaxNodes = 10'000'000;
constexpr int64_t kMaxDepth = 1000;

// Goes down all trees for all rows and adds up the leaves.
class Descent {
 public:
  Descent(ExpandContext& c, const TreeEnsemble& trees) : c_(c), trees_(trees) {}

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
    for (const LeafWeight& weight : trees_.weights) {
      if (weight.target < 0 || weight.target >= trees_.targets)
        return c_.fail("a weight of target {}, expected 0 to {}", weight.target,
                       trees_.targets - 1);
    }
    std::vector<int64_t> level = trees_.roots;
    for (int64_t depth = 0;; ++depth) {
      std::set<int64_t> next;
      for (const int64_t at : level) {
        const TreeNode& node = trees_.nodes[static_cast<size_t>(at)];
        if (node.mode == TreeMode::kLeaf) continue;
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
    const auto leaf = [](const TreeNode& n) { return n.mode == TreeMode::kLeaf; };
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

  ValueId compared(TreeMode mode, ValueId x, ValueId split) {
    switch (mode) {
      case TreeMode::kLeq: return c_.binary("LessOrEqual", x, split);
      case TreeMode::kLt: return c_.binary("Less", x, split);
      case TreeMode::kGte: return c_.binary("GreaterOrEqual", x, split);
      case TreeMode::kGt: return c_.binary("Greater", x, split);
      case TreeMode::kNeq: return c_.add("Not", {c_.binary("Equal", x, split)});
      default: return c_.binary("Equal", x, split);
    }
  }

  void step() {
    const ValueId x = c_.add("GatherElements", {x_, at_place(features_)}, {{"axis", int64_t{1}}});
    const ValueId split = at_place(splits_);
    ValueId holds = kNoValue;
    for (const TreeMode mode : modes_) {
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

  // The leaves that were reached are put together for each target.
  Result<ValueId> sum() {
    const bool most = trees_.aggregate == "MAX", least = trees_.aggregate == "MIN";
    const double none = most    ? -std::numeric_limits<double>::infinity()
                        : least ? std::numeric_limits<double>::infinity()
                                : 0;
    const DType type = trees_.type;
    HONE_ASSIGN_OR_RETURN(Tensor weights,
                          c_.new_constant(type, {std::ssize(trees_.nodes), trees_.targets}));
    for (int64_t i = 0; i < weights.size(); ++i) weights.set(i, none);
    for (const LeafWeight& weight : trees_.weights) {
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
  const TreeEnsemble& trees_;
  ValueId x_ = kNoValue, place_ = kNoValue;
  ValueId features_ = kNoValue, splits_ = kNoValue, on_true_ = kNoValue, on_false_ = kNoValue;
  ValueId mode_ = kNoValue, missing_ = kNoValue;
  std::set<TreeMode> modes_;
  int64_t rows_ = 0;
};

Status check_aggregate(const ExpandContext& c, const std::string& name) {
  for (const char* known : {"SUM", "AVERAGE", "MIN", "MAX"}) {
    if (name == known) return ok_status();
  }
  return c.fail("aggregate_function is '{}'", name);
}

Status set_targets(ExpandContext& c, const TreeEnsemble& trees, const std::string& transform,
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
  HONE_ASSIGN_OR_RETURN(TreeEnsemble trees, read_listed_trees(c, "target"));
  trees.targets = c.attributes().integer("n_targets", 1);
  trees.aggregate = c.attributes().text("aggregate_function", "SUM");
  return set_targets(c, trees, c.attributes().text("post_transform", "NONE"), DType::kF32);
}

Status expand_tree_ensemble(ExpandContext& c) {
  static constexpr const char* kAggregates[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  static constexpr const char* kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO",
                                                "PROBIT"};
  HONE_ASSIGN_OR_RETURN(TreeEnsemble trees, read_split_trees(c));
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
Status set_two_classes(ExpandContext& c, TreeEnsemble& trees, const std::vector<int64_t>& labels) {
  const bool of_first = trees.weights[0].target == 0;
  bool is_share = true;
  for (LeafWeight& weight : trees.weights) {
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
                        ml_transformed(c, c.add("Concat", {none, score}, {{"axis", int64_t{1}}})));
  c.result(1, c.cast(z, DType::kF32));
  return ok_status();
}

Status expand_tree_classifier(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const auto labels, ml_labels(c, "classlabels_int64s"));
  HONE_ASSIGN_OR_RETURN(TreeEnsemble trees, read_listed_trees(c, "class"));
  std::set<int64_t> classes;
  for (const LeafWeight& weight : trees.weights) classes.insert(weight.target);
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
