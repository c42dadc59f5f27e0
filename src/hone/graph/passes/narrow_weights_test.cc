#include <gtest/gtest.h>

#include "hone/graph/passes/pass_testing.h"

namespace hone::graph {
namespace {

Status narrow_integers(Graph& graph) {
  HalfWeights weights;
  return narrow_weights(graph, {}, weights);
}

// Integers from `low` to `high`, both of which are there.
Tensor integers(const Shape& shape, int32_t low, int32_t high, DType dtype = DType::kI32) {
  Tensor tensor(dtype, shape);
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.set(i, static_cast<double>(low + i * 7919 % (high - low + 1)));
  tensor.set(tensor.size() - 1, high);
  return tensor;
}

// The type of the weights of the only product of its kind, after the pass, which keeps its result.
DType type_after(const Graph& before, const Tensor& x, const std::string& product = "MatMul") {
  const Graph graph = run_pass(before, narrow_integers, {x});
  EXPECT_EQ(count(graph, product), 1);
  for (const Node& node : graph.nodes) {
    if (node.type == product) return graph.value(node.inputs[1]).dtype;
  }
  return DType::kBool;
}

DType product_type(int32_t low, int32_t high, int64_t columns = 128) {
  TestModel model;
  model.input("x", {1, 128}, DType::kI32).constant("w", integers({128, columns}, low, high));
  model.node("MatMul", {"x", "w"}, {"y"}).output("y");
  return type_after(model.graph(), integers({1, 128}, -200, 200));
}

TEST(narrow_weights, integers_of_products_take_the_bytes_that_they_need) {
  EXPECT_EQ(product_type(-128, 127), DType::kI8);
  EXPECT_EQ(product_type(0, 255), DType::kU8);
  EXPECT_EQ(product_type(-255, 128), DType::kI16);
  EXPECT_EQ(product_type(-32768, 32767), DType::kI16);
  EXPECT_EQ(product_type(-32768, 32768), DType::kI32);
  EXPECT_EQ(product_type(-128, 127, 8), DType::kI32);  // a core's own cache holds them anyway
}

TEST(narrow_weights, integers_that_others_read_stay_as_they_are) {
  TestModel model;
  model.input("x", {1, 128}, DType::kI32).constant("w", integers({128, 128}, -9, 9));
  model.node("MatMul", {"x", "w"}, {"p"}).node("Add", {"p", "w"}, {"y"}).output("y");
  EXPECT_EQ(type_after(model.graph(), integers({1, 128}, -5, 5)), DType::kI32);
}

TEST(narrow_weights, quantised_weights_are_bytes_again) {
  TestModel model(17);
  model.input("x", {1, 32, 3, 3}, DType::kU8);
  model.constant("w", integers({32, 32, 3, 3}, 0, 255, DType::kU8));
  model.constant("x_zero", integers({}, 3, 3, DType::kU8));
  model.constant("w_zero", integers({}, 128, 128, DType::kU8));
  model.node("ConvInteger", {"x", "w", "x_zero", "w_zero"}, {"y"}).output("y");
  const Tensor x = integers({1, 32, 3, 3}, 0, 255, DType::kU8);
  Graph graph = model.graph();
  ASSERT_TRUE(fold_constants(graph).ok());
  EXPECT_EQ(type_after(graph, x, "hone.ConvInteger"), DType::kI8);
}

// A product of bytes whose weights go from `low` to `high`, with zero points, in float32.
Graph quantised_product(int32_t low, int32_t high, int64_t depth, bool as_integers = false) {
  TestModel model(17);
  model.input("x", {1, depth}, DType::kU8).input("x_zero", {}, DType::kU8);
  model.constant("w", integers({depth, 64}, low, high, DType::kI8));
  model.node("MatMulInteger", {"x", "w", "x_zero"}, {"p"});
  model.node("Cast", {"p"}, {"f"}, {{"to", int64_t{1}}}).node("Relu", {"f"}, {"y"}).output("y");
  if (as_integers) model.output("p");
  Graph graph = model.graph();
  EXPECT_TRUE(remove_identities(graph).ok() && fold_constants(graph).ok());
  return run_pass(graph, narrow_integers,
                  {integers({1, depth}, 0, 255, DType::kU8), integers({}, 255, 255, DType::kU8)});
}

TEST(narrow_weights, products_of_bytes_are_exact_in_float32) {
  const Graph graph = quantised_product(-128, 127, 512);
  EXPECT_EQ(types(graph),
            (std::vector<std::string>{"Cast", "Cast", "Sub", "Cast", "hone.ExactMatMul", "Relu"}));
  EXPECT_TRUE(graph.nodes[4].plain_sums);
  // A reader of the integers gets them.
  EXPECT_EQ(count(quantised_product(-128, 127, 512, true), "Cast"), 4);
}

TEST(narrow_weights, sums_that_float32_does_not_have_stay_integers) {
  EXPECT_EQ(count(quantised_product(-128, -127, 1024), "hone.ExactMatMul"), 0);
  EXPECT_EQ(count(quantised_product(-128, -127, 512), "hone.ExactMatMul"), 1);
}

}  // namespace
}  // namespace hone::graph
