#include <gtest/gtest.h>

#include "hone/graph/passes/pass_testing.h"

namespace hone::graph {
namespace {

TEST(eliminate_common_subexpressions, nodes_that_compute_the_same_become_one) {
  Rng rng(71);
  TestModel model;
  model.input("x", {2, 3}).input("z", {2, 3});
  // Equal chains, one with commuted operands.
  model.node("Add", {"x", "z"}, {"a"}).node("Add", {"z", "x"}, {"b"});
  model.node("Softmax", {"a"}, {"c"}, {{"axis", int64_t{1}}});
  model.node("Softmax", {"b"}, {"d"}, {{"axis", int64_t{1}}});
  model.node("Mul", {"c", "d"}, {"y"}).output("y");
  const Graph graph = run_pass(model.graph(), eliminate_common_subexpressions,
                               {random_tensor({2, 3}, rng), random_tensor({2, 3}, rng)});
  EXPECT_EQ(types(graph), (std::vector<std::string>{"Add", "Softmax", "Mul"}));
}

TEST(eliminate_common_subexpressions, keeps_what_differs) {
  Rng rng(72);
  TestModel model;
  model.input("x", {3, 3}).input("z", {3, 3});
  // Another order of operands, another attribute.
  model.node("Sub", {"x", "z"}, {"a"}).node("Sub", {"z", "x"}, {"b"});
  model.node("Softmax", {"a"}, {"c"}, {{"axis", int64_t{1}}});
  model.node("Softmax", {"a"}, {"d"}, {{"axis", int64_t{0}}});
  model.node("Sum", {"b", "c", "d"}, {"y"}).output("y");
  const Graph before = model.graph();
  const Graph graph = run_pass(before, eliminate_common_subexpressions,
                               {random_tensor({3, 3}, rng), random_tensor({3, 3}, rng)});
  EXPECT_EQ(types(graph), types(before));
}

TEST(eliminate_common_subexpressions, equal_constants_become_one) {
  Rng rng(73);
  const Tensor weight = random_tensor({3, 3}, rng);
  Tensor other = weight.clone();
  other.set(8, 5);
  TestModel model;
  model.input("x", {2, 3}).constant("u", weight).constant("v", weight.clone());
  model.constant("w", other).constant("f", weight.reshaped({9}));
  model.node("MatMul", {"x", "u"}, {"a"}).node("MatMul", {"x", "v"}, {"b"});
  model.node("MatMul", {"x", "w"}, {"c"}).node("Sum", {"a", "b", "c"}, {"y"}).output("y");
  model.output("f");
  const Graph graph =
      run_pass(model.graph(), eliminate_common_subexpressions, {random_tensor({2, 3}, rng)});
  EXPECT_EQ(count(graph, "MatMul"), 2);
}

TEST(eliminate_common_subexpressions, serves_outputs_with_one_value_each) {
  Rng rng(74);
  TestModel model;
  model.input("x", {4}).node("Exp", {"x"}, {"y"}).node("Exp", {"x"}, {"z"});
  model.output("y").output("z");
  const Tensor x = random_tensor({4}, rng);
  const Graph graph = run_pass(model.graph(), eliminate_common_subexpressions, {x});
  EXPECT_EQ(types(graph), std::vector<std::string>{"Exp"});
  const auto results = run_optimized(model.graph(), {x});
  EXPECT_EQ(relative_error(results[0], results[1]), 0);
  EXPECT_EQ(graph.output_names, (std::vector<std::string>{"y", "z"}));
}

}  // namespace
}  // namespace hone::graph
