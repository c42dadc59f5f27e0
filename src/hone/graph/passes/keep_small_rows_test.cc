#include <gtest/gtest.h>

#include "hone/graph/passes/pass_testing.h"

namespace hone::graph {
namespace {

// Data [2, 8] through a padded product, of whose result p [4, 8] the caller divides rows.
TestModel padded_product(Rng& rng) {
  TestModel model(23);
  model.input("x", {2, 8}).constant("pads", ints({1, 0, 1, 0}));
  model.constant("w", random_tensor({8, 8}, rng)).constant("b", random_tensor({8}, rng));
  model.constant("rows", ints({1}))
      .constant("keep", ints({4, 8}))
      .constant("half", floats({}, {0.5}));
  model.node("Pad", {"x", "pads"}, {"padded"}).node("MatMul", {"padded", "w"}, {"q"});
  model.node("Add", {"q", "b"}, {"a"}).node("Reshape", {"a", "keep"}, {"p"});
  return model;
}

// Returns whether the product is marked after the pass.
bool is_marked(TestModel& model) {
  model.output("y");
  Graph graph = model.graph();
  EXPECT_TRUE(keep_small_rows(graph).ok());
  int marked = 0;
  for (const Node& node : graph.nodes) {
    if (!node.plain_sums) continue;
    EXPECT_EQ(node.type, "MatMul");
    ++marked;
  }
  return marked == 1;
}

TestModel& clipped_length(TestModel& model, float least) {
  model.constant("least", floats({}, {least}));
  model.node("ReduceL2", {"p", "rows"}, {"length"}).node("Clip", {"length", "least"}, {"c"});
  return model.constant("all", ints({4, 8})).node("Expand", {"c", "all"}, {"e"});
}

TEST(keep_small_rows, marks_products_whose_rows_are_divided_by_their_length) {
  Rng rng(201);
  TestModel model = padded_product(rng);
  clipped_length(model, 1e-12F).node("Div", {"p", "e"}, {"y"});
  EXPECT_TRUE(is_marked(model));
}

TEST(keep_small_rows, knows_inverse_roots_of_squares) {
  Rng rng(202);
  for (const float epsilon : {1e-12F, 1e-5F}) {
    TestModel model = padded_product(rng);
    model.constant("epsilon", floats({}, {epsilon})).node("Mul", {"p", "p"}, {"squares"});
    model.node("ReduceMean", {"squares", "rows"}, {"mean"});
    model.node("Add", {"mean", "epsilon"}, {"sum"}).node("Sqrt", {"sum"}, {"root"});
    model.node("Reciprocal", {"root"}, {"inverse"}).node("Mul", {"inverse", "p"}, {"y"});
    EXPECT_EQ(is_marked(model), epsilon < 1e-6F) << epsilon;
  }
}

TEST(keep_small_rows, knows_them_as_one_operator) {
  Rng rng(204);
  for (const float epsilon : {1e-12F, 1e-6F}) {
    TestModel model = padded_product(rng);
    model.constant("scale", random_tensor({8}, rng));
    model.node("RMSNormalization", {"p", "scale"}, {"y"}, {{"epsilon", epsilon}});
    EXPECT_EQ(is_marked(model), epsilon < 1e-9F) << epsilon;
  }
}

TEST(keep_small_rows, leaves_other_divisions) {
  Rng rng(203);
  TestModel large = padded_product(rng);
  clipped_length(large, 0.5F).node("Div", {"p", "e"}, {"y"});
  EXPECT_FALSE(is_marked(large)) << "lengths of half at least";
  TestModel halves = padded_product(rng);
  halves.node("Div", {"p", "half"}, {"y"});
  EXPECT_FALSE(is_marked(halves)) << "a constant";
  TestModel others = padded_product(rng);
  others.input("z", {4, 8}).node("ReduceL2", {"z", "rows"}, {"length"});
  others.node("Div", {"p", "length"}, {"y"});
  EXPECT_FALSE(is_marked(others)) << "the length of something else";
  TestModel product = padded_product(rng);
  product.node("ReduceL2", {"p", "rows"}, {"length"});
  product.node("Mul", {"p", "length"}, {"y"});
  EXPECT_FALSE(is_marked(product)) << "no division";
  TestModel gate = padded_product(rng);
  gate.node("Div", {"p", "half"}, {"scaled"}).node("Softmax", {"scaled"}, {"gate"});
  gate.node("Mul", {"p", "gate"}, {"y"});
  EXPECT_FALSE(is_marked(gate)) << "a softmax";
}

}  // namespace
}  // namespace hone::graph
