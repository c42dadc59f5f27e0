#include <gtest/gtest.h>

#include "hone/graph/passes/pass_testing.h"

namespace hone::graph {
namespace {

using Types = std::vector<std::string>;

TEST(merge_parallel_products, projections_to_heads_become_one_product) {
  Rng rng(121);
  TestModel model;
  model.input("x", {1, 5, 6}).constant("s", ints({1, 5, 2, 4}));
  for (const std::string p : {"q", "k", "v"}) {
    model.constant(p + ".w", random_tensor({6, 8}, rng))
        .constant(p + ".b", random_tensor({8}, rng));
    model.node("MatMul", {"x", p + ".w"}, {p + ".p"});
    if (p == "k") model.node("Add", {p + ".p", p + ".b"}, {p + ".a"});
    if (p != "k") model.node("Add", {p + ".b", p + ".p"}, {p + ".a"});
    model.node("Reshape", {p + ".a", "s"}, {p + ".r"});
    model.node("Transpose", {p + ".r"}, {p},
               {{"perm", p == "k" ? Shape{0, 2, 3, 1} : Shape{0, 2, 1, 3}}});
  }
  model.node("MatMul", {"q", "k"}, {"a"})
      .node("Softmax", {"a"}, {"b"})
      .node("MatMul", {"b", "v"}, {"y"});
  model.output("y");
  const Tensor x = random_tensor({1, 5, 6}, rng);
  const Graph graph = run_pass(model.graph(), merge_parallel_products, {x});
  EXPECT_EQ(count(graph, "MatMul"), 3);
  EXPECT_EQ(count(graph, "Add"), 1);
  EXPECT_EQ(graph.value(graph.nodes[0].outputs[0]).shape, (Shape{1, 5, 24}));
  // Only the right operand of a product is copied in the end.
  Graph all = model.graph();
  PassOptions options;
  options.also = {"merge_parallel_products"};
  ASSERT_TRUE(optimize(all, options).ok());
  EXPECT_EQ(count(all, "MatMul"), 1);  // and one attention
  EXPECT_EQ(count(all, "hone.Window"), 2);
  EXPECT_EQ(count(all, "Slice"), 1);
  const Tensor expected = run_plainly(model.graph(), {x})[0];
  EXPECT_LT(relative_error(run_optimized(graph, {x})[0], expected), 1e-5);
}

TestModel branches(Rng& rng, const std::string& second_activation, bool concatenated) {
  TestModel model;
  model.input("x", {1, 3, 5, 5}).constant("low", floats({}, {0})).constant("high", floats({}, {6}));
  for (const int i : {0, 1}) {
    const std::string n = std::to_string(i);
    const int64_t channels = i == 0 ? 4 : 2;
    model.constant("w" + n, random_tensor({channels, 3, 1, 1}, rng));
    model.constant("b" + n, random_tensor({channels}, rng));
    model.node("Conv", {"x", "w" + n, "b" + n}, {"c" + n});
    if (i == 0 || second_activation == "Clip")
      model.node("Clip", {"c" + n, "low", "high"}, {"r" + n});
    if (i == 1 && second_activation != "Clip") model.node(second_activation, {"c1"}, {"r1"});
    if (concatenated) continue;
    model.constant("v" + n, random_tensor({2, channels, 3, 3}, rng));
    model.node("Conv", {"r" + n, "v" + n}, {"d" + n}, {{"pads", Shape{1, 1, 1, 1}}})
        .output("d" + n);
  }
  if (concatenated) model.node("Concat", {"r0", "r1"}, {"y"}, {{"axis", int64_t{1}}}).output("y");
  return model;
}

TEST(merge_parallel_products, convolutions_with_their_activations) {
  Rng rng(122);
  const TestModel model = branches(rng, "Clip", false);
  const Tensor x = random_tensor({1, 3, 5, 5}, rng);
  const Graph graph = run_pass(model.graph(), merge_parallel_products, {x});
  EXPECT_EQ(types(graph), (Types{"Conv", "Clip", "Slice", "Slice", "Conv", "Conv"}));
  const auto expected = run_plainly(model.graph(), {x}), actual = run_optimized(graph, {x});
  for (const size_t i : {0, 1}) EXPECT_LT(relative_error(actual[i], expected[i]), 1e-5);
}

TEST(merge_parallel_products, keeps_what_would_be_copied_or_no_longer_fused) {
  Rng rng(123);
  const Tensor x = random_tensor({1, 3, 5, 5}, rng);
  for (const TestModel& model : {branches(rng, "Tanh", false), branches(rng, "Clip", true)}) {
    const Graph before = model.graph();
    EXPECT_EQ(types(run_pass(before, merge_parallel_products, {x})), types(before));
  }
}

TEST(merge_parallel_products, gemms_with_one_bias_each) {
  Rng rng(124);
  TestModel model;
  model.input("x", {3, 4});
  for (const std::string n : {"0", "1"}) {
    model.constant("w" + n, random_tensor({5, 4}, rng)).constant("b" + n, random_tensor({5}, rng));
    model.node("Gemm", {"x", "w" + n, "b" + n}, {"g" + n}, {{"transB", int64_t{1}}});
    model.node("Softmax", {"g" + n}, {"y" + n}).output("y" + n);
  }
  const Graph graph =
      run_pass(model.graph(), merge_parallel_products, {random_tensor({3, 4}, rng)});
  EXPECT_EQ(types(graph), (Types{"Gemm", "Slice", "Slice", "Softmax", "Softmax"}));
}

}  // namespace
}  // namespace hone::graph
