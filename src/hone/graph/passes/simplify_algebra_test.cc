#include <gtest/gtest.h>

#include "hone/graph/passes/pass_testing.h"
#include "hone/graph/passes/simplify_rules.h"

namespace hone::graph {
namespace {

using Types = std::vector<std::string>;

Graph simplified(const TestModel& model, const std::vector<Tensor>& inputs) {
  return run_pass(model.graph(), simplify_algebra, inputs);
}

TEST(simplify_algebra, chains_of_views_become_one_or_none) {
  Rng rng(101);
  TestModel model;
  model.input("x", {2, 3, 4, 5}).constant("s", ints({6, 20})).constant("t", ints({4, 30}));
  model.node("Reshape", {"x", "s"}, {"a"}).node("Reshape", {"a", "t"}, {"b"});
  model.node("Exp", {"b"}, {"y"}).output("y");
  model.node("Transpose", {"x"}, {"c"}, {{"perm", Shape{1, 2, 3, 0}}});
  model.node("Transpose", {"c"}, {"d"}, {{"perm", Shape{3, 0, 1, 2}}});
  model.node("Exp", {"d"}, {"z"}).output("z");
  model.node("Transpose", {"c"}, {"e"}, {{"perm", Shape{1, 0, 2, 3}}});
  model.node("Exp", {"e"}, {"w"}).output("w");
  const Graph graph = simplified(model, {random_tensor({2, 3, 4, 5}, rng)});
  EXPECT_EQ(count(graph, "Reshape"), 1);
  EXPECT_EQ(count(graph, "Transpose"), 1);
  EXPECT_EQ(graph.nodes.size(), 5u);
}

TestModel& slice(TestModel& model, const std::string& from, const std::string& to, int64_t axis,
                 int64_t start, int64_t end, int64_t step = 1) {
  const auto name = [&](const char* what) { return to + what; };
  model.constant(name(".s"), ints({start})).constant(name(".e"), ints({end}));
  model.constant(name(".a"), ints({axis})).constant(name(".t"), ints({step}));
  return model.node("Slice", {from, name(".s"), name(".e"), name(".a"), name(".t")}, {to});
}

TEST(simplify_algebra, slices_of_slices_become_one) {
  Rng rng(102);
  TestModel model;
  model.input("x", {4, 20});
  slice(model, "x", "a", 1, 1, 19, 2);
  slice(model, "a", "b", 1, 7, 0, -3);
  slice(model, "b", "c", 0, 1, 3);
  slice(model, "c", "d", 0, 0, 2).node("Exp", {"d"}, {"y"}).output("y");
  const Graph graph = simplified(model, {random_tensor({4, 20}, rng)});
  EXPECT_EQ(types(graph), (Types{"Slice", "Exp"}));
}

TEST(simplify_algebra, a_reshape_of_parts_comes_before_the_parts) {
  Rng rng(103);
  TestModel model;
  model.input("x", {2, 5, 24}).constant("s", ints({2, 5, 2, 4}));
  slice(model, "x", "a", 2, 8, 16).node("Reshape", {"a", "s"}, {"b"});
  model.node("Exp", {"b"}, {"y"}).output("y");
  const Graph graph = simplified(model, {random_tensor({2, 5, 24}, rng)});
  EXPECT_EQ(types(graph), (Types{"Reshape", "Slice", "Exp"}));
  EXPECT_EQ(graph.value(graph.nodes[0].outputs[0]).shape, (Shape{2, 5, 6, 4}));
  // Parts that begin or end within a step of the new dimension.
  EXPECT_FALSE(reshape_before_slice({2, 5, 24}, {2, 6, 8}, {2, 5, 2, 4}).has_value());
  EXPECT_FALSE(reshape_before_slice({2, 5, 22}, {2, 8, 8}, {2, 5, 2, 4}).has_value());
  EXPECT_FALSE(reshape_before_slice({2, 5, 24}, {2, 8, 8}, {5, 16}).has_value());
  EXPECT_TRUE(reshape_before_slice({2, 5, 24}, {2, 8, 8}, {5, 2, 2, 4}).has_value());
}

TEST(simplify_algebra, casts_that_keep_every_value_are_one) {
  const auto casts = [](DType from, DType between, DType to) {
    TestModel model;
    model.input("x", {3}, from).node("Cast", {"x"}, {"a"}, {{"to", static_cast<int64_t>(between)}});
    model.node("Cast", {"a"}, {"y"}, {{"to", static_cast<int64_t>(to)}}).output("y");
    Tensor x(from, {3});
    for (int i = 0; i < 3; ++i) x.set(i, i + 1);
    return count(simplified(model, {x}), "Cast");
  };
  EXPECT_EQ(casts(DType::kI32, DType::kI64, DType::kI32), 0);
  EXPECT_EQ(casts(DType::kI32, DType::kI64, DType::kF32), 1);
  EXPECT_EQ(casts(DType::kBool, DType::kF32, DType::kI64), 1);
  EXPECT_EQ(casts(DType::kF16, DType::kF32, DType::kF16), 0);
  EXPECT_EQ(casts(DType::kF32, DType::kF16, DType::kF32), 2);
  EXPECT_EQ(casts(DType::kF32, DType::kI32, DType::kF32), 2);
  EXPECT_EQ(casts(DType::kI64, DType::kF32, DType::kI64), 2);
  EXPECT_EQ(casts(DType::kI8, DType::kU32, DType::kI64), 2);
}

TEST(simplify_algebra, neutral_constants_and_double_negation_go) {
  Rng rng(104);
  TestModel model;
  model.input("x", {2, 3}).constant("one", floats({1, 1}, {1})).constant("zero", floats({}, {0}));
  model.constant("minus", floats({3}, {-0.F, -0.F, -0.F}));
  model.constant("ones", floats({3}, {1, 1, 1})).node("Mul", {"one", "x"}, {"a"});
  model.node("Add", {"a", "minus"}, {"b"}).node("Sub", {"b", "zero"}, {"c"});
  model.node("Div", {"c", "ones"}, {"d"}).node("Pow", {"d", "one"}, {"e"});
  model.node("Neg", {"e"}, {"f"}).node("Neg", {"f"}, {"g"}).node("Exp", {"g"}, {"y"}).output("y");
  EXPECT_EQ(types(simplified(model, {random_tensor({2, 3}, rng)})), Types{"Exp"});
}

// -0 + 0 is +0: a zero that would change a sign stays; integers have one zero.
TEST(simplify_algebra, zeros_that_decide_a_sign_stay) {
  const auto left = [](const char* type, const Tensor& zero, bool zero_first = false) {
    TestModel model;
    model.input("x", {2}, zero.dtype()).constant("zero", zero);
    model.node(
        type,
        zero_first ? std::vector<std::string>{"zero", "x"} : std::vector<std::string>{"x", "zero"},
        {"y"});
    Tensor x(zero.dtype(), {2});
    return simplified(model.output("y"), {x}).nodes.size();
  };
  const Tensor plus = floats({}, {0}), minus = floats({2}, {-0.F, -0.F});
  EXPECT_EQ(left("Add", plus), 1U);
  EXPECT_EQ(left("Add", plus, true), 1U);
  EXPECT_EQ(left("Add", floats({2}, {-0.F, 0})), 1U);
  EXPECT_EQ(left("Add", minus), 0U);
  EXPECT_EQ(left("Add", minus, true), 0U);
  EXPECT_EQ(left("Sub", minus), 1U);
  EXPECT_EQ(left("Sub", plus), 0U);
  EXPECT_EQ(left("Sub", plus, true), 1U);
  EXPECT_EQ(left("Add", ints({0, 0})), 0U);
  EXPECT_EQ(left("Sub", ints({0, 0})), 0U);
}

TEST(simplify_algebra, constants_that_lose_digits_or_range_do_not_meet) {
  const auto left = [](const char* type, float a, float b) {
    TestModel model;
    model.input("x", {2}).constant("a", floats({}, {a})).constant("b", floats({}, {b}));
    model.node(type, {"x", "a"}, {"c"}).node(type, {"c", "b"}, {"y"}).output("y");
    return simplified(model, {floats({2}, {0, 0})}).nodes.size();
  };
  EXPECT_EQ(left("Add", 12582912, -12582912), 2U) << "rounds to a whole number";
  EXPECT_EQ(left("Add", 1, -0.99F), 1U);
  EXPECT_EQ(left("Mul", 1e30F, 1e30F), 2U);
  EXPECT_EQ(left("Mul", 1e-30F, 1e-30F), 2U);
  EXPECT_EQ(left("Mul", 1e-30F, 1e20F), 1U);
  EXPECT_EQ(left("Mul", 0, 2), 1U);
}

TEST(simplify_algebra, a_constant_that_widens_the_shape_stays) {
  Rng rng(105);
  TestModel model;
  model.input("x", {3}).constant("one", floats({1, 1}, {1}));
  model.node("Mul", {"x", "one"}, {"y"}).output("y");
  model.constant("zero", floats({}, {0})).node("Sub", {"zero", "x"}, {"z"}).output("z");
  EXPECT_EQ(types(simplified(model, {random_tensor({3}, rng)})), (Types{"Mul", "Sub"}));
}

TEST(simplify_algebra, powers_and_divisions_become_products) {
  Rng rng(106);
  TestModel model;
  model.input("x", {4}).constant("two", floats({}, {2})).constant("eight", floats({}, {8}));
  model.constant("three", floats({}, {3})).node("Pow", {"x", "two"}, {"a"});
  model.node("Div", {"a", "eight"}, {"b"}).node("Div", {"b", "three"}, {"y"}).output("y");
  EXPECT_EQ(types(simplified(model, {random_tensor({4}, rng)})), (Types{"Mul", "Mul", "Div"}));
}

TEST(simplify_algebra, constants_that_meet_are_one) {
  Rng rng(107);
  TestModel model;
  model.input("x", {2, 3}).constant("a", random_tensor({3}, rng)).constant("b", floats({}, {3}));
  model.constant("c", random_tensor({2, 1}, rng)).node("Mul", {"a", "x"}, {"d"});
  model.node("Mul", {"d", "b"}, {"e"})
      .node("Add", {"e", "b"}, {"f"})
      .node("Add", {"c", "f"}, {"g"});
  // Neither is the same for all elements.
  model.node("Add", {"g", "a"}, {"y"}).output("y");
  EXPECT_EQ(types(simplified(model, {random_tensor({2, 3}, rng)})), (Types{"Mul", "Add", "Add"}));
}

TEST(simplify_algebra, transposes_cancel_through_elementwise_operators) {
  Rng rng(108);
  TestModel model;
  model.input("x", {2, 3, 4}).input("z", {2, 3, 4}).constant("c", floats({1}, {0.5}));
  model.node("Transpose", {"x"}, {"a"}, {{"perm", Shape{1, 2, 0}}});
  model.node("Transpose", {"z"}, {"b"}, {{"perm", Shape{1, 2, 0}}});
  model.node("Mul", {"a", "c"}, {"d"}).node("Tanh", {"b"}, {"e"}).node("Add", {"d", "e"}, {"f"});
  model.node("Transpose", {"f"}, {"y"}, {{"perm", Shape{2, 0, 1}}}).output("y");
  const std::vector<Tensor> inputs = {random_tensor({2, 3, 4}, rng), random_tensor({2, 3, 4}, rng)};
  EXPECT_EQ(types(simplified(model, inputs)), (Types{"Mul", "Tanh", "Add"}));
}

TEST(simplify_algebra, transposes_that_do_not_cancel_stay) {
  Rng rng(109);
  TestModel model;
  model.input("x", {3, 3, 3}).node("Transpose", {"x"}, {"a"}, {{"perm", Shape{1, 2, 0}}});
  model.node("Tanh", {"a"}, {"b"}).node("Transpose", {"b"}, {"y"}, {{"perm", Shape{1, 2, 0}}});
  EXPECT_EQ(count(simplified(model.output("y"), {random_tensor({3, 3, 3}, rng)}), "Transpose"), 2);
}

TEST(simplify_algebra, gemm_takes_transposes) {
  Rng rng(110);
  TestModel model;
  model.input("x", {4, 2}).input("z", {4, 3}).node("Transpose", {"x"}, {"a"});
  model.node("Transpose", {"z"}, {"b"}, {{"perm", Shape{1, 0}}});
  model.node("Gemm", {"a", "b"}, {"y"}, {{"transB", int64_t{1}}}).output("y");
  const std::vector<Tensor> inputs = {random_tensor({4, 2}, rng), random_tensor({4, 3}, rng)};
  EXPECT_EQ(types(simplified(model, inputs)), Types{"Gemm"});
}

TEST(simplify_algebra, reshapes_let_followers_join_the_product) {
  Rng rng(113);
  TestModel model;
  model.input("x", {1, 5, 4}).input("r", {1, 5, 6}).constant("flat", ints({-1, 4}));
  model.constant("w", random_tensor({4, 6}, rng)).constant("b", random_tensor({6}, rng));
  model.constant("s", ints({1, 5, 6})).constant("k", random_tensor({1, 1, 6}, rng));
  model.node("Reshape", {"x", "flat"}, {"x2"}).node("Gemm", {"x2", "w", "b"}, {"g"});
  model.node("Reshape", {"g", "s"}, {"h"}).node("Tanh", {"h"}, {"t"});
  model.node("Mul", {"t", "k"}, {"m"}).node("Add", {"r", "m"}, {"y"}).output("y");
  const std::vector<Tensor> inputs = {random_tensor({1, 5, 4}, rng), random_tensor({1, 5, 6}, rng)};
  const Graph graph = simplified(model, inputs);
  EXPECT_EQ(types(graph), (Types{"Reshape", "Gemm", "Tanh", "Mul", "Reshape", "Add", "Reshape"}));
  const auto wanted = run_plainly(model.graph(), inputs), got = run_optimized(graph, inputs);
  EXPECT_LT(relative_error(got[0], wanted[0]), 1e-5);
}

TEST(simplify_algebra, reshapes_stay_where_operands_differ_along_what_they_change) {
  Rng rng(114);
  TestModel model;
  model.input("x", {6, 4}).constant("w", random_tensor({4, 8}, rng)).constant("s", ints({2, 3, 8}));
  model.constant("k", random_tensor({2, 1, 1}, rng));
  model.node("MatMul", {"x", "w"}, {"p"}).node("Reshape", {"p", "s"}, {"r"});
  model.node("Mul", {"r", "k"}, {"y"}).output("y");
  const Graph graph = simplified(model, {random_tensor({6, 4}, rng)});
  EXPECT_EQ(types(graph), (Types{"MatMul", "Reshape", "Mul"}));
}

TEST(simplify_algebra, two_products_of_other_shapes_meet_once) {
  Rng rng(115);
  TestModel model;
  model.input("x", {6, 4}).constant("w", random_tensor({4, 8}, rng));
  model.input("z", {1, 2, 3, 4}).constant("s", ints({2, 3, 8}));
  model.node("MatMul", {"x", "w"}, {"p"}).node("Reshape", {"p", "s"}, {"r"});
  model.node("MatMul", {"z", "w"}, {"q"}).node("Reshape", {"q", "s"}, {"t"});
  model.node("Add", {"r", "t"}, {"y"}).output("y");
  const Graph graph =
      simplified(model, {random_tensor({6, 4}, rng), random_tensor({1, 2, 3, 4}, rng)});
  EXPECT_EQ(count(graph, "Reshape"), 2);
}

}  // namespace
}  // namespace hone::graph
