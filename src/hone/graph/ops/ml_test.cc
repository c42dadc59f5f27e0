// Operators of ai.onnx.ml. Their values are compared with ONNX Runtime in
// tests/ml_operators_test.py.
#include <gtest/gtest.h>

#include <algorithm>

#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

const char* const kDomain = "ai.onnx.ml";
using Texts = std::vector<std::string>;
using Floats = std::vector<float>;

void expect_error(const TestModel& model, Code code, const std::string& part) {
  const Status status = model.import().status();
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

// Two trees: x0 <= 0 ? 1 : (x1 < 2 ? 10 : 20), and 100.
AttributeList two_trees() {
  return {{"nodes_treeids", Shape{0, 0, 0, 0, 0, 1}},
          {"nodes_nodeids", Shape{0, 1, 2, 3, 4, 0}},
          {"nodes_featureids", Shape{0, 0, 1, 0, 0, 0}},
          {"nodes_modes", Texts{"BRANCH_LEQ", "LEAF", "BRANCH_LT", "LEAF", "LEAF", "LEAF"}},
          {"nodes_values", Floats{0, 0, 2, 0, 0, 0}},
          {"nodes_truenodeids", Shape{1, 0, 3, 0, 0, 0}},
          {"nodes_falsenodeids", Shape{2, 0, 4, 0, 0, 0}},
          {"target_treeids", Shape{0, 0, 0, 1}},
          {"target_nodeids", Shape{1, 3, 4, 0}},
          {"target_ids", Shape{0, 0, 0, 0}},
          {"target_weights", Floats{1, 10, 20, 100}}};
}

TestModel trees(const AttributeList& changed = {}) {
  AttributeList attributes = two_trees();
  for (const auto& [name, value] : changed) {
    const auto has_name = [&, &n = name](const auto& given) { return given.first == n; };
    std::erase_if(attributes, has_name);
    attributes.emplace_back(name, value);
  }
  TestModel model(17);
  model.input("x", {4, 2}).node("TreeEnsembleRegressor", {"x"}, {"y"}, attributes, kDomain);
  model.output("y");
  return model;
}

TEST(ml, trees_go_down_to_their_leaves) {
  const Tensor x = floats({4, 2}, {0, 5, 1, 1, 1, 2, NAN, 0});
  const auto y = run_plainly(trees().graph(), {x});
  ASSERT_EQ(y.size(), 1U);
  EXPECT_EQ(relative_error(y[0], floats({4, 1}, {101, 110, 120, 110})), 0);
  const auto tracked = run_plainly(
      trees({{"nodes_missing_value_tracks_true", Shape{1, 0, 0, 0, 0, 0}}}).graph(), {x});
  EXPECT_EQ(relative_error(tracked[0], floats({4, 1}, {101, 110, 120, 101})), 0);
  const auto least = run_plainly(
      trees({{"aggregate_function", std::string("MIN")}, {"base_values", Floats{0.5F}}}).graph(),
      {x});
  EXPECT_EQ(relative_error(least[0], floats({4, 1}, {1.5F, 10.5F, 20.5F, 10.5F})), 0);
}

TEST(ml, trees_that_are_none_are_refused) {
  expect_error(trees({{"nodes_truenodeids", Shape{0, 0, 3, 0, 0, 0}}}), Code::kUnsupported,
               "trees deeper than 1000, or whose nodes lead to themselves");
  expect_error(trees({{"nodes_truenodeids", Shape{9, 0, 3, 0, 0, 0}}}), Code::kInvalid,
               "tree 0 has no node 9");
  expect_error(trees({{"nodes_nodeids", Shape{0, 1, 2, 3, 3, 0}}}), Code::kInvalid,
               "node 3 of tree 0 is there twice");
  expect_error(trees({{"nodes_featureids", Shape{0, 0, 2, 0, 0, 0}}}), Code::kInvalid,
               "a node reads feature 2, expected 0 to 1");
  expect_error(trees({{"target_ids", Shape{0, 0, 0, 1}}}), Code::kInvalid,
               "a weight of target 1, expected 0 to 0");
  expect_error(trees({{"nodes_values", Floats{0}}}), Code::kInvalid, "lists of nodes of 6");
  expect_error(trees({{"post_transform", std::string("FROB")}}), Code::kUnsupported,
               "post_transform 'FROB', expected NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO or PROBIT");
}

// A chain of nodes of TreeEnsemble, each of which is the root of a tree.
TEST(ml, trees_that_share_their_nodes_are_looked_at_once) {
  constexpr int64_t kNodes = 100'000;
  Shape nodes(kNodes), next(kNodes), zeros(kNodes), last(kNodes), ones(kNodes, 1);
  for (int64_t i = 0; i < kNodes; ++i) {
    nodes[static_cast<size_t>(i)] = i;
    next[static_cast<size_t>(i)] = std::min(i + 1, kNodes - 1);
  }
  last.back() = 1;
  next.back() = 0;
  TestModel model(17);
  model.input("x", {4, 2})
      .node("TreeEnsemble", {"x"}, {"y"},
            {{"nodes_featureids", zeros},
             {"nodes_splits", Tensor(DType::kF32, {kNodes})},
             {"nodes_modes", Tensor(DType::kU8, {kNodes})},
             {"nodes_truenodeids", zeros},
             {"nodes_trueleafs", ones},
             {"nodes_falsenodeids", next},
             {"nodes_falseleafs", last},
             {"leaf_targetids", Shape{0}},
             {"leaf_weights", floats({1}, {1})},
             {"tree_roots", nodes}},
            kDomain);
  expect_error(model.output("y"), Code::kUnsupported, "trees deeper than 1000");
}

TEST(ml, extremes_of_doubles_are_not_those_of_floats) {
  Tensor splits(DType::kF64, {1}), weights(DType::kF64, {2});
  weights.set(0, 1e300);
  weights.set(1, -1e300);
  for (const int64_t aggregate : {2, 3}) {
    TestModel model(17);
    model.input("x", {2, 1}, DType::kF64)
        .node("TreeEnsemble", {"x"}, {"y"},
              {{"nodes_featureids", Shape{0}},
               {"nodes_splits", splits},
               {"nodes_modes", Tensor(DType::kU8, {1})},
               {"nodes_truenodeids", Shape{0}},
               {"nodes_trueleafs", Shape{1}},
               {"nodes_falsenodeids", Shape{1}},
               {"nodes_falseleafs", Shape{1}},
               {"leaf_targetids", Shape{0, 0}},
               {"leaf_weights", weights},
               {"aggregate_function", aggregate},
               {"n_targets", int64_t{2}},
               {"tree_roots", Shape{0}}},
              kDomain);
    Tensor x(DType::kF64, {2, 1});
    x.set(1, 1);
    const auto y = run_plainly(model.output("y").graph(), {x});
    ASSERT_EQ(y.size(), 1U);
    EXPECT_EQ(y[0].at(0), 1e300);
    EXPECT_EQ(y[0].at(1), 0);  // no weight is of that target
    EXPECT_EQ(y[0].at(2), -1e300);
  }
}

TEST(ml, labels_are_numbers) {
  const auto classifier = [](const AttributeList& labels) {
    AttributeList attributes = {{"coefficients", Floats{1, 0, 0, 1}},
                                {"intercepts", Floats{0, 0.5F}}};
    attributes.insert(attributes.end(), labels.begin(), labels.end());
    TestModel model(17);
    model.input("x", {2, 2}).node("LinearClassifier", {"x"}, {"y", "z"}, attributes, kDomain);
    model.output("y").output("z");
    return model;
  };
  const auto results = run_plainly(classifier({{"classlabels_ints", Shape{7, 3}}}).graph(),
                                   {floats({2, 2}, {1, 0, 0, 1})});
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].as<int64_t>()[0], 7);
  EXPECT_EQ(results[0].as<int64_t>()[1], 3);
  EXPECT_EQ(relative_error(results[1], floats({2, 2}, {1, 0.5F, 0, 1.5F})), 0);
  expect_error(classifier({{"classlabels_strings", Texts{"a", "b"}}}), Code::kUnsupported,
               "labels that are texts, expected numbers");
  expect_error(classifier({{"classlabels_ints", Shape{1, 2, 3}}}), Code::kInvalid,
               "3 labels for 2 scores");
}

TEST(ml, columns_have_values_of_their_own) {
  TestModel model(17);
  model.input("x", {2, 2});
  model.node("Imputer", {"x"}, {"full"},
             {{"imputed_value_floats", Floats{5, 6}}, {"replaced_value_float", NAN}}, kDomain);
  model.node("Scaler", {"full"}, {"y"}, {{"offset", Floats{1, 2}}, {"scale", Floats{2}}}, kDomain);
  const auto y = run_plainly(model.output("y").graph(), {floats({2, 2}, {NAN, 3, 4, NAN})});
  ASSERT_EQ(y.size(), 1U);
  EXPECT_EQ(relative_error(y[0], floats({2, 2}, {8, 2, 6, 8})), 0);
  TestModel wrong(17);
  wrong.input("x", {2, 2}).node("Scaler", {"x"}, {"y"}, {{"offset", Floats{1, 2, 3}}}, kDomain);
  expect_error(wrong.output("y"), Code::kInvalid,
               "node 'node_y' (ai.onnx.ml.Scaler): 3 values in offset for data of shape [2, 2]");
}

TEST(ml, columns_and_categories_that_do_not_fit_are_named) {
  const auto node = [](const std::string& type, const AttributeList& attributes) {
    TestModel model(17);
    model.input("x", {2, 3}).node(type, {"x"}, {"y"}, attributes, kDomain).output("y");
    return model;
  };
  const auto both = run_plainly(node("FeatureVectorizer", {{"inputdimensions", Shape{4}}}).graph(),
                                {floats({2, 3}, {1, 2, 3, 4, 5, 6})});
  EXPECT_EQ(relative_error(both[0], floats({2, 4}, {1, 2, 3, 0, 4, 5, 6, 0})), 0);
  expect_error(node("FeatureVectorizer", {{"inputdimensions", Shape{1, 2}}}), Code::kInvalid,
               "2 inputdimensions for 1 operands");
  expect_error(node("FeatureVectorizer", {{"inputdimensions", Shape{-1}}}), Code::kInvalid,
               "inputdimensions [-1], expected numbers of columns");
  expect_error(node("OneHotEncoder", {{"cats_int64s", Shape{1, 2, 1}}}), Code::kInvalid,
               "the category 1 is there twice");
  expect_error(node("OneHotEncoder", {{"zeros", int64_t{1}}}), Code::kInvalid, "no cats_int64s");
  expect_error(node("OneHotEncoder", {{"cats_strings", Texts{"a"}}}), Code::kUnsupported,
               "categories that are texts: encode texts before the model");
}

}  // namespace
}  // namespace hone::graph
