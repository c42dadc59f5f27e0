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

Status narrow_and_make_exact(Graph& graph) {
  HONE_RETURN_IF_ERROR(narrow_integers(graph));
  return exact_products(graph);
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
  return run_pass(graph, narrow_and_make_exact,
                  {integers({1, depth}, 0, 255, DType::kU8), integers({}, 255, 255, DType::kU8)});
}

TEST(exact_products, products_of_bytes_are_exact_in_float32) {
  const Graph graph = quantised_product(-128, 127, 512);
  EXPECT_EQ(types(graph),
            (std::vector<std::string>{"Cast", "Cast", "Sub", "Cast", "hone.ExactMatMul", "Relu"}));
  EXPECT_TRUE(graph.nodes[4].plain_sums);
  // A reader of the integers gets them.
  EXPECT_EQ(count(quantised_product(-128, 127, 512, true), "Cast"), 4);
}

TEST(exact_products, sums_that_float32_does_not_have_stay_integers) {
  EXPECT_EQ(count(quantised_product(-128, -127, 1024), "hone.ExactMatMul"), 0);
  EXPECT_EQ(count(quantised_product(-128, -127, 512), "hone.ExactMatMul"), 1);
}

// How many products of u8 less a zero point are made exact, by weights of which one is `largest`.
int64_t exact_with(int32_t largest, DType zero_type = DType::kU8) {
  TestModel model(17);
  model.input("x", {1, 128}, DType::kU8).input("zero", {}, zero_type);
  Tensor weights = integers({128, 64}, -1, 1);
  weights.set(200, largest);
  model.constant("w", weights);
  const AttributeList to_i32 = {{"to", static_cast<int64_t>(DType::kI32)}};
  model.node("Cast", {"x"}, {"wide"}, to_i32).node("Cast", {"zero"}, {"wide_zero"}, to_i32);
  model.node("Sub", {"wide", "wide_zero"}, {"data"});
  model.node("MatMul", {"data", "w"}, {"y"}).output("y");
  const Graph graph =
      run_pass(model.graph(), narrow_and_make_exact,
               {integers({1, 128}, 0, 255, DType::kU8), integers({}, 3, 3, zero_type)});
  return count(graph, "hone.ExactMatMul");
}

// Kernels may round factors to tf32, which makes 4096 of 4097, or to bfloat16.
TEST(exact_products, factors_that_short_floats_do_not_have_stay_integers) {
  EXPECT_EQ(exact_with(256), 1);
  EXPECT_EQ(exact_with(-256), 1);
  EXPECT_EQ(exact_with(257), 0);
  EXPECT_EQ(exact_with(-257), 0);
  EXPECT_EQ(exact_with(4097), 0);
  EXPECT_EQ(exact_with(256, DType::kI8), 0);  // data from -127 to 383
}

// Each pass may be left out alone, and has a name of its own in what says which passes changed the
// graph.
TEST(exact_products, is_a_pass_of_its_own) {
  TestModel model(17);
  model.input("x", {1, 128}, DType::kU8).constant("w", integers({128, 128}, -1, 1, DType::kI8));
  model.node("MatMulInteger", {"x", "w"}, {"y"}).output("y");
  const auto exact_without = [&](const std::vector<std::string>& skip, bool& changed) {
    PassOptions options{.skip = skip};
    options.on_change = [&](const std::string& pass, const std::string&, const RuleCounts&) {
      changed |= pass == "exact_products";
    };
    Graph graph = model.graph();
    EXPECT_TRUE(optimize(graph, options).ok());
    return count(graph, "hone.ExactMatMul");
  };
  bool changed = false;
  EXPECT_EQ(exact_without({}, changed), 1);
  EXPECT_TRUE(changed);
  changed = false;
  EXPECT_EQ(exact_without({"exact_products"}, changed), 0);
  EXPECT_EQ(exact_without({"narrow_weights"}, changed), 0);
  EXPECT_FALSE(changed);
}

}  // namespace
}  // namespace hone::graph
