#include "hone/graph/ops/ml_tree_pack.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "hone/graph/ops/ml_tree_walk.h"
#include "hone/graph/passes/pass.h"
#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(ml_tree_pack, keys_rise_with_numbers) {
  for (const DType type : {DType::kF32, DType::kF64}) {
    const double order[] = {-kInfinity, -1e30, -1, -1e-40, 0, 1e-40, 1, 1e30, kInfinity};
    for (size_t i = 1; i < std::size(order); ++i)
      EXPECT_LT(tree_key(type, order[i - 1]), tree_key(type, order[i])) << order[i];
    EXPECT_EQ(tree_key(type, -0.0), tree_key(type, 0.0));
    EXPECT_GT(tree_key(type, -kInfinity), 0U);
  }
  EXPECT_EQ(tree_key(DType::kF32, std::nextafterf(2, 3)), tree_key(DType::kF32, 2) + 1);
  EXPECT_EQ(tree_key(DType::kF64, std::nextafter(-2.0, -3.0)), tree_key(DType::kF64, -2) - 1);
}

// Packs trees in a context of any node.
Result<PackedTrees> try_packed(const TreeEnsemble& trees, DType type) {
  TestModel model(17);
  model.input("x", {1, 3}).node("Relu", {"x"}, {"y"}).output("y");
  Graph graph = model.graph();
  std::vector<Node> nodes;
  const Node node = graph.nodes[0];
  ExpandContext context(graph, node, nodes);
  return pack_trees(context, trees, type, 3, 0);
}

PackedTrees packed(const TreeEnsemble& trees, DType type = DType::kF32) {
  Result<PackedTrees> made = try_packed(trees, type);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? std::move(made).value() : PackedTrees();
}

TreeNode test(TreeMode mode, int64_t feature, double split, int64_t on_true, int64_t on_false) {
  return {mode, feature, split, on_true, on_false};
}

TEST(ml_tree_pack, shallow_trees_become_complete) {
  // Node 0: x1 <= 2 ? leaf 1 : (x0 < 3 ? leaf 2 : leaf 3)
  TreeEnsemble trees;
  trees.nodes = {test(TreeMode::kLeq, 1, 2, 1, 4), {}, {}, {}, test(TreeMode::kLt, 0, 3, 2, 3)};
  trees.roots = {0};
  trees.weights = {{1, 0, 10}, {2, 0, 20}, {3, 0, 30}, {3, 0, 1}};
  const PackedTrees made = packed(trees);
  ASSERT_EQ(made.groups.size(), 1U);
  EXPECT_EQ(made.groups[0].depth, 2);
  EXPECT_EQ(made.data, PackedTrees::Data::kPlain);
  EXPECT_EQ(made.nodes.shape(), (Shape{4, 2}));
  const auto nodes = made.nodes.as<uint32_t>();
  EXPECT_EQ(nodes[2], 1U);  // node 1, the root
  EXPECT_EQ(nodes[3], tree_key(DType::kF32, 2));
  EXPECT_EQ(nodes[6], 0U);  // node 3, its right child
  EXPECT_EQ(nodes[7], tree_key(DType::kF32, 3) - 1);
  EXPECT_EQ(relative_error(made.leaves, floats({4, 1}, {10, 10, 20, 31})), 0);
}

TEST(ml_tree_pack, deep_trees_name_their_children_and_share_them) {
  // 12 nodes x0 == i ? leaf : next, which are two tests each; that leaf is one for all.
  TreeEnsemble trees;
  constexpr int64_t kDepth = 12;
  for (int64_t i = 0; i < kDepth; ++i)
    trees.nodes.push_back(test(TreeMode::kEq, 0, static_cast<double>(i), kDepth, i + 1));
  trees.nodes[kDepth - 1].on_false = kDepth + 1;
  trees.nodes.resize(kDepth + 2);
  trees.roots = {0};
  trees.weights = {{kDepth, 0, 7}, {kDepth + 1, 0, 9}};
  const PackedTrees made = packed(trees, DType::kF64);
  ASSERT_EQ(made.groups.size(), 1U);
  EXPECT_EQ(made.groups[0].depth, TreeGroup::kByChildren);
  EXPECT_EQ(made.leaves.shape(), (Shape{2, 1}));
  EXPECT_EQ(made.nodes.shape(), (Shape{2 * (1 + 2 * 2 * kDepth), 2}));
  EXPECT_EQ(made.trees.at(1), 2 * kDepth / kTurnSteps);
}

TEST(ml_tree_pack, trees_with_a_target_each_have_one_number_a_leaf) {
  TreeEnsemble trees;
  trees.nodes.resize(3);
  trees.roots = {0, 1, 2};
  trees.targets = 5;
  trees.weights = {{0, 4, 1}, {1, 2, 3}};
  const PackedTrees one = packed(trees);
  EXPECT_EQ(one.leaves.shape(), (Shape{3, 1}));
  EXPECT_EQ(one.trees.at(2), 4);
  EXPECT_EQ(one.trees.at(5), 2);
  trees.weights.push_back({1, 0, 2});
  EXPECT_EQ(packed(trees).leaves.shape(), (Shape{3, 5}));
}

// A chain of tests x0 <= i ? leaf i : next, the leaves behind the tests.
TreeEnsemble chain(int64_t depth) {
  TreeEnsemble trees;
  for (int64_t i = 0; i < depth; ++i)
    trees.nodes.push_back(test(TreeMode::kLeq, 0, static_cast<double>(i), depth + i, i + 1));
  trees.nodes.back().on_false = 2 * depth;
  trees.nodes.resize(static_cast<size_t>(2 * depth + 1));
  trees.roots = {0};
  return trees;
}

TEST(ml_tree_pack, trees_that_would_fill_the_memory_are_refused_at_once) {
  TreeEnsemble trees = chain(900);
  trees.roots.assign(1'000'000, 0);
  const Status one = try_packed(trees, DType::kF32).status();
  EXPECT_EQ(one.code(), Code::kUnsupported) << one.message();
  EXPECT_NE(one.message().find("expected at most"), std::string::npos) << one.message();
  for (int64_t& root : trees.roots) root = (&root - trees.roots.data()) % 300;
  EXPECT_EQ(try_packed(trees, DType::kF32).status().code(), Code::kUnsupported);
}

TEST(ml_tree_pack, wide_leaves_are_not_added_in_numbers) {
  TreeEnsemble trees = chain(6);  // 7 leaves, 64 of a complete tree
  trees.weights = {{6, 0, 1}, {7, 1, 2}};
  trees.targets = 2;
  EXPECT_EQ(packed(trees).groups.at(0).depth, 6);
  trees.targets = 100;
  const PackedTrees made = packed(trees);
  EXPECT_EQ(made.groups.at(0).depth, TreeGroup::kByChildren);
  EXPECT_EQ(made.leaves.shape(), (Shape{7, 100}));
  TreeEnsemble full = chain(1);  // has nothing to add
  full.weights = {{1, 0, 1}, {2, 1, 2}, {2, 3, 1}};
  full.targets = 100;
  EXPECT_EQ(packed(full).groups.at(0).depth, 1);
}

// A tree of one test, for all numbers that matter and NaN, against its definition.
void expect_right(TreeMode mode, bool missing, double split, DType type) {
  const std::vector<double> data = {-kInfinity, -1, -0.0, 0, 0.25, 0.5, kInfinity, NAN};
  const bool wide = type == DType::kF64;
  TestModel model(17);
  Tensor x(type, {std::ssize(data), 1}), splits(type, {1}), weights(type, {2});
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, data[static_cast<size_t>(i)]);
  splits.set(0, split);
  weights.set(0, 1);
  Tensor modes(DType::kU8, {1});
  modes.set(0, static_cast<double>(mode));
  model.input("x", x.shape(), type)
      .node("TreeEnsemble", {"x"}, {"y"},
            {{"nodes_featureids", Shape{0}},
             {"nodes_splits", splits},
             {"nodes_modes", modes},
             {"nodes_truenodeids", Shape{0}},
             {"nodes_trueleafs", Shape{1}},
             {"nodes_falsenodeids", Shape{1}},
             {"nodes_falseleafs", Shape{1}},
             {"nodes_missing_value_tracks_true", Shape{missing ? 1 : 0}},
             {"leaf_targetids", Shape{0, 0}},
             {"leaf_weights", weights},
             {"tree_roots", Shape{0}}},
            "ai.onnx.ml");
  const auto y = run_plainly(model.output("y").graph(), {x});
  ASSERT_EQ(y.size(), 1U);
  for (int64_t i = 0; i < x.size(); ++i) {
    const double v = data[static_cast<size_t>(i)];
    const bool holds = mode == TreeMode::kLeq   ? v <= split
                       : mode == TreeMode::kLt  ? v < split
                       : mode == TreeMode::kGte ? v >= split
                       : mode == TreeMode::kGt  ? v > split
                       : mode == TreeMode::kEq  ? v == split
                                                : v != split;
    EXPECT_EQ(y[0].at(i) == 1, holds || (missing && std::isnan(v)))
        << static_cast<int>(mode) << (missing ? " missing " : " ") << v << " to " << split
        << (wide ? " f64" : "");
  }
}

TEST(ml_tree_pack, tests_go_where_their_modes_say) {
  for (const TreeMode mode : {TreeMode::kLeq, TreeMode::kLt, TreeMode::kGte, TreeMode::kGt,
                              TreeMode::kEq, TreeMode::kNeq}) {
    for (const double split : {0.0, 0.25, -kInfinity, kInfinity, static_cast<double>(NAN)}) {
      expect_right(mode, false, split, DType::kF32);
      expect_right(mode, true, split, DType::kF32);
    }
    expect_right(mode, true, 0.25, DType::kF64);
  }
}

// `count` chains of `depth` tests x0 < i + 0.5 of the form of before version 5, whose leaf i has
// the weight i + 1 of target i % targets.
TestModel chains(int64_t count, int64_t depth, int64_t rows, int64_t targets,
                 const std::string& aggregate) {
  std::map<std::string, Shape> lists;
  std::vector<float> splits, weights;
  std::vector<std::string> modes;
  for (int64_t tree = 0; tree < count; ++tree) {
    for (int64_t node = 0; node <= 2 * depth; ++node) {
      const bool leaf = node % 2 == 1 || node == 2 * depth;
      lists["nodes_treeids"].push_back(tree);
      lists["nodes_nodeids"].push_back(node);
      lists["nodes_featureids"].push_back(0);
      lists["nodes_truenodeids"].push_back(leaf ? 0 : node + 1);
      lists["nodes_falsenodeids"].push_back(leaf ? 0 : node + 2);
      splits.push_back(static_cast<float>(node / 2) + 0.5F);
      modes.emplace_back(leaf ? "LEAF" : "BRANCH_LT");
      if (!leaf) continue;
      lists["target_treeids"].push_back(tree);
      lists["target_nodeids"].push_back(node);
      lists["target_ids"].push_back(node / 2 % targets);
      weights.push_back(static_cast<float>(node / 2 + 1));
    }
  }
  AttributeList attributes = {{"n_targets", targets},
                              {"aggregate_function", aggregate},
                              {"nodes_values", splits},
                              {"nodes_modes", modes},
                              {"target_weights", weights}};
  for (const auto& [name, list] : lists) attributes.emplace_back(name, list);
  TestModel model(17);
  model.input("x", {rows, 1}).node("TreeEnsembleRegressor", {"x"}, {"y"}, attributes, "ai.onnx.ml");
  model.output("y");
  return model;
}

// Row i is i % (depth + 1), so it reaches leaf i % (depth + 1) of each tree.
void expect_chains(int64_t count, int64_t depth, int64_t rows, int64_t targets,
                   const std::string& aggregate) {
  Tensor x(DType::kF32, {rows, 1}), expected(DType::kF32, {rows, targets});
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t leaf = std::min(i % (depth + 1), depth);
    x.set(i, static_cast<double>(leaf));
    const double sum =
        static_cast<double>(leaf + 1) * (aggregate == "SUM" ? static_cast<double>(count) : 1);
    expected.set(i * targets + leaf % targets, sum);
  }
  const auto y = run_optimized(chains(count, depth, rows, targets, aggregate).graph(), {x});
  ASSERT_EQ(y.size(), 1U);
  EXPECT_EQ(relative_error(y[0], expected), 0)
      << count << " " << depth << " " << rows << " " << targets << " " << aggregate;
}

TEST(ml_tree_walk, rows_and_trees_of_all_counts_reach_their_leaves) {
  for (const int64_t rows : {1, 7, 8, 19}) {
    for (const int64_t count : {1, 8, 11}) {
      expect_chains(count, 3, rows, 1, "SUM");
      expect_chains(count, 13, rows, 2, "AVERAGE");
    }
  }
  expect_chains(3, 13, 140, 1, "MAX");
  expect_chains(3, 2, 9, 3, "MIN");
  expect_chains(2, 0, 3, 2, "SUM");
  expect_chains(700, 4, 1, 1, "SUM");  // in parts
}

TEST(ml_tree_walk, rows_go_alone_where_there_are_thousands_of_threads) {
  Graph graph = chains(3, 2, 20, 1, "SUM").graph();
  const auto block = [&] {
    for (const Node& node : graph.nodes) {
      if (node.type == "hone.TreeWalk") return node.attributes.integer("block", 0);
    }
    return int64_t{-1};
  };
  EXPECT_EQ(block(), 8);
  ASSERT_TRUE(optimize(graph, {.any_order = true}).ok());
  EXPECT_EQ(block(), 1);
  Tensor x(DType::kF32, {20, 1});
  x.set(3, 2);
  const auto y = run_plainly(graph, {x});
  ASSERT_EQ(y.size(), 1U);
  EXPECT_EQ(y[0].at(0), 3);
  EXPECT_EQ(y[0].at(3), 9);
}

}  // namespace
}  // namespace hone::graph
