// Trees of ai.onnx.ml: TreeEnsemble, TreeEnsembleRegressor and TreeEnsembleClassifier. Rows go
// through all trees by hone.TreeWalk (ops/ml_tree_walk.h); plain nodes make scores of the sums.
#include <algorithm>
#include <limits>
#include <set>

#include "hone/graph/ops/ml.h"
#include "hone/graph/ops/ml_tree_walk.h"

namespace hone::graph {
namespace {

constexpr int64_t kMaxNodes = 10'000'000;
constexpr int64_t kMaxDepth = 1000;

// The trees' check, their walk and what follows the sums of leaves.
class Scores {
 public:
  Scores(ExpandContext& c, const TreeEnsemble& trees) : c_(c), trees_(trees) {}

  // Returns the scores [N, targets].
  Result<ValueId> run() {
    if (c_.extents_of(c_.input(0)) != kNoValue)
      return c_.unsupported("data whose shape depends on other data");
    HONE_ASSIGN_OR_RETURN(x_, ml_rows(c_, true));
    if (trees_.type == DType::kF64) x_ = c_.cast(x_, DType::kF64);
    HONE_RETURN_IF_ERROR(c_.status());
    HONE_RETURN_IF_ERROR(check());
    const int64_t rows = c_.shape_of(x_)[0], features = c_.shape_of(x_)[1];
    if (rows == 0) return c_.constant(Tensor(trees_.type, {0, trees_.targets}));
    HONE_ASSIGN_OR_RETURN(const PackedTrees packed,
                          pack_trees(c_, trees_, c_.dtype_of(x_), features, neutral()));
    const ValueId data = data_for(packed.data);
    return finished(add_tree_walk(c_, data, packed, trees_.targets, trees_.aggregate));
  }

 private:
  Status check() {
    if (std::ssize(trees_.nodes) > kMaxNodes || trees_.roots.empty() ||
        std::ssize(trees_.roots) > kMaxNodes)
      return c_.unsupported("{} trees of {} nodes, expected 1 to {}", trees_.roots.size(),
                            trees_.nodes.size(), kMaxNodes);
    for (const LeafWeight& weight : trees_.weights) {
      if (weight.target < 0 || weight.target >= trees_.targets)
        return c_.fail("a weight of target {}, expected 0 to {}", weight.target,
                       trees_.targets - 1);
    }
    return check_depths();
  }

  // A node is looked at twice, however many trees and nodes lead to it: before the nodes that it
  // leads to, and behind them.
  Status check_depths() {
    const int64_t features = c_.shape_of(x_)[1];
    constexpr int kUnknown = -1, kOpen = -2;
    std::vector<int> depth(trees_.nodes.size(), kUnknown);
    std::vector<int64_t> open(trees_.roots.rbegin(), trees_.roots.rend());
    while (!open.empty()) {
      const auto at = static_cast<size_t>(open.back());
      const TreeNode& node = trees_.nodes[at];
      if (depth[at] == kUnknown && node.mode == TreeMode::kLeaf) depth[at] = 0;
      if (depth[at] >= 0) {
        open.pop_back();
        continue;
      }
      const auto yes = static_cast<size_t>(node.on_true), no = static_cast<size_t>(node.on_false);
      if (depth[at] == kUnknown) {
        if (node.feature < 0 || node.feature >= features)
          return c_.fail("a node reads feature {}, expected 0 to {}", node.feature, features - 1);
        depth[at] = kOpen;
        if (depth[yes] == kOpen || depth[no] == kOpen) return too_deep();
        for (const size_t child : {no, yes}) {
          if (depth[child] == kUnknown) open.push_back(static_cast<int64_t>(child));
        }
        continue;
      }
      depth[at] = std::max(depth[yes], depth[no]) + 1;
      if (depth[at] > kMaxDepth) return too_deep();
    }
    return ok_status();
  }

  [[nodiscard]] Status too_deep() const {
    return c_.unsupported("trees deeper than {}, or whose nodes lead to themselves", kMaxDepth);
  }

  // What a target has that no leaf has a weight of.
  [[nodiscard]] double neutral() const {
    const double infinity = std::numeric_limits<double>::infinity();
    return trees_.aggregate == "MAX" ? -infinity : trees_.aggregate == "MIN" ? infinity : 0;
  }

  ValueId data_for(PackedTrees::Data data) {
    if (data == PackedTrees::Data::kPlain) return x_;
    const double lowest = -std::numeric_limits<double>::infinity();
    const ValueId copy =
        c_.add("Where", {c_.add("IsNaN", {x_}), c_.scalar(c_.dtype_of(x_), lowest), x_});
    if (data == PackedTrees::Data::kCopy) return copy;
    return c_.add("Concat", {x_, copy}, {{"axis", int64_t{1}}});
  }

  Result<ValueId> finished(ValueId y) {
    const bool sums = trees_.aggregate == "SUM" || trees_.aggregate == "AVERAGE";
    if (trees_.aggregate == "AVERAGE")
      y = c_.binary("Div", y, static_cast<double>(trees_.roots.size()));
    ValueId with_base = y;
    if (!trees_.base.empty()) {
      HONE_ASSIGN_OR_RETURN(const ValueId base, base_values());
      with_base = c_.binary("Add", y, base);
    }
    if (sums) return with_base;
    const ValueId untouched = c_.binary("Equal", y, neutral());
    return c_.add("Where", {untouched, c_.scalar(trees_.type, 0), with_base});
  }

  Result<ValueId> base_values() {
    if (trees_.base.size() != 1 && std::ssize(trees_.base) != trees_.targets)
      return c_.fail("{} base_values, expected none, 1 or {}", trees_.base.size(), trees_.targets);
    return c_.constant(ml_list(trees_.base, trees_.type));
  }

  ExpandContext& c_;
  const TreeEnsemble& trees_;
  ValueId x_ = kNoValue;
};

Status check_aggregate(const ExpandContext& c, const std::string& name) {
  for (const char* known : {"SUM", "AVERAGE", "MIN", "MAX"}) {
    if (name == known) return ok_status();
  }
  return c.fail("aggregate_function is '{}', expected SUM, AVERAGE, MIN or MAX", name);
}

Status set_targets(ExpandContext& c, const TreeEnsemble& trees, const std::string& transform,
                   DType type) {
  if (trees.targets < 1 || trees.targets > kMaxNodes)
    return c.fail("n_targets is {}, expected 1 to {}", trees.targets, kMaxNodes);
  HONE_RETURN_IF_ERROR(check_aggregate(c, trees.aggregate));
  HONE_ASSIGN_OR_RETURN(const ValueId scores, Scores(c, trees).run());
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
    return c.fail("aggregate_function is {} and post_transform {}, expected 0 to 3 and 0 to 4",
                  aggregate, transform);
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
  HONE_ASSIGN_OR_RETURN(const ValueId score, Scores(c, trees).run());
  const double threshold = is_share ? 0.5 : 0;
  if (of_first)
    return ml_set_binary(c, {.score = score, .threshold = threshold, .is_share = is_share}, labels);
  const int64_t rows = c.shape_of(score)[0];
  const ValueId second = c.reshape(c.binary("Greater", score, threshold), {rows});
  ml_set_labels(c, c.cast(second, DType::kI64), labels);
  const ValueId none = uniform(c, c.dtype_of(score), {rows, 1}, 0);
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
  HONE_ASSIGN_OR_RETURN(const ValueId scores, Scores(c, trees).run());
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
  // Those of the second half are for a number of rows that varies (widen_rules.cc), with the
  // largest one as `rows`.
  static const std::string kOfRange = "rows:i ";
  static const std::string regressor = kOfRange + std::string(kRegressor);
  static const std::string classifier = kOfRange + std::string(kClassifier);
  static const std::string ensemble = kOfRange + std::string(kEnsemble);
  static const Op ops[] = {
      {.name = "ai.onnx.ml.TreeEnsembleRegressor",
       .attributes = kRegressor,
       .expand = expand_tree_regressor},
      {.name = "ai.onnx.ml.TreeEnsembleClassifier",
       .max_outputs = 2,
       .attributes = kClassifier,
       .expand = expand_tree_classifier},
      {.name = "ai.onnx.ml.TreeEnsemble", .attributes = kEnsemble, .expand = expand_tree_ensemble},
      {.name = "hone.TreeEnsembleRegressor",
       .attributes = regressor,
       .expand = expand_tree_regressor},
      {.name = "hone.TreeEnsembleClassifier",
       .max_outputs = 2,
       .attributes = classifier,
       .expand = expand_tree_classifier},
      {.name = "hone.TreeEnsemble", .attributes = ensemble, .expand = expand_tree_ensemble},
  };
  return ops;
}

}  // namespace hone::graph
