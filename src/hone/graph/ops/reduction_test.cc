#include <gtest/gtest.h>

#include <cmath>

#include "hone/graph/tasks.h"
#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

TEST(reduction, over_axes_of_both_forms) {
  const Tensor x = floats({2, 3}, {1, 5, 3, -4, -2, -9});
  struct Case {
    const char* type;
    std::vector<float> rows, columns;
  };
  const std::vector<Case> cases = {{"ReduceMean", {3, -5}, {-1.5f, 1.5f, -3}},
                                   {"ReduceSum", {9, -15}, {-3, 3, -6}},
                                   {"ReduceMax", {5, -2}, {1, 5, 3}},
                                   {"ReduceMin", {1, -9}, {-4, -2, -9}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.type);
    TestModel old(12);
    old.input("x", {2, 3})
        .node(c.type, {"x"}, {"y"}, {{"axes", Shape{-1}}, {"keepdims", int64_t{0}}})
        .output("y");
    EXPECT_LT(relative_error(run_optimized(old.graph(), {x})[0], floats({2}, c.rows)), 1e-6);
    TestModel now(18);
    now.input("x", {2, 3}).constant("a", ints({0})).node(c.type, {"x", "a"}, {"y"}).output("y");
    EXPECT_LT(relative_error(run_optimized(now.graph(), {x})[0], floats({1, 3}, c.columns)), 1e-6);
  }
}

// A NaN is the result of a reduction, and pooling passes over it, wherever it is
// (docs/user/embedding.md, "Numbers").
TEST(reduction, a_nan_in_an_extreme_is_the_result_or_passed_over) {
  const Tensor x = floats({5, 3}, {5, NAN, 2, 5, 2, NAN, NAN, 5, 2, NAN, 2, 5, NAN, NAN, NAN});
  struct Case {
    const char* type;
    AttributeList attributes;
    Shape shape;
    std::vector<float> expected;
  };
  const AttributeList rows = {{"axes", Shape{1}}, {"keepdims", int64_t{0}}};
  const std::vector<float> none(5, NAN), largest = {5, 5, 5, 5, -HUGE_VALF};
  const Case cases[] = {
      {"ReduceMax", rows, {5, 3}, none},
      {"ReduceMin", rows, {5, 3}, none},
      {"GlobalMaxPool", {}, {1, 5, 3}, largest},
      {"MaxPool", {{"kernel_shape", Shape{3}}}, {1, 5, 3}, largest},
      {"MaxPool", {{"kernel_shape", Shape{4}}, {"pads", Shape{0, 1}}}, {1, 5, 3}, largest}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.type);
    TestModel model(12);
    model.input("x", c.shape).node(c.type, {"x"}, {"y"}, c.attributes).output("y");
    Tensor given(DType::kF32, c.shape);
    for (int64_t i = 0; i < x.size(); ++i) given.set(i, x.at(i));
    const Tensor found = run_plainly(model.graph(), {given})[0];
    for (int64_t i = 0; i < 5; ++i) {
      const double expected = c.expected[static_cast<size_t>(i)];
      EXPECT_TRUE(found.at(i) == expected || (std::isnan(found.at(i)) && std::isnan(expected)))
          << "row " << i << ": " << found.at(i) << ", expected " << expected;
    }
  }
}

// The maximum of two operands, and an activation that is a maximum, return NaN if an operand is
// NaN.
TEST(reduction, a_nan_goes_through_extremes_of_operands) {
  const Tensor x = floats({3}, {NAN, -1, 2}), other = floats({3}, {1, NAN, 3});
  for (const char* type : {"Max", "Min"}) {
    TestModel model(13);
    model.input("x", {3}).input("o", {3}).node(type, {"x", "o"}, {"y"}).output("y");
    const Tensor found = run_optimized(model.graph(), {x, other})[0];
    EXPECT_TRUE(std::isnan(found.at(0)) && std::isnan(found.at(1))) << type;
    EXPECT_EQ(found.at(2), type == std::string("Max") ? 3 : 2);
  }
  TestModel relu(13);
  relu.input("x", {3}).node("Relu", {"x"}, {"y"}).output("y");
  const Tensor found = run_optimized(relu.graph(), {x})[0];
  EXPECT_TRUE(std::isnan(found.at(0)));
  EXPECT_EQ(found.at(1), 0);
}

TEST(reduction, without_axes_takes_all_or_none) {
  const Tensor x = floats({2, 3}, {1, 5, 3, -4, -2, -9});
  TestModel all(18);
  all.input("x", {2, 3}).node("ReduceSum", {"x"}, {"y"}, {{"keepdims", int64_t{0}}}).output("y");
  EXPECT_LT(relative_error(run_optimized(all.graph(), {x})[0], floats({}, {-6})), 1e-6);
  TestModel none(18);
  none.input("x", {2, 3})
      .node("ReduceSum", {"x"}, {"y"}, {{"noop_with_empty_axes", int64_t{1}}})
      .output("y");
  EXPECT_EQ(relative_error(run_optimized(none.graph(), {x})[0], x), 0);
}

TEST(softmax, is_per_axis_since_opset_13_and_over_the_rest_before) {
  Rng rng(51);
  const Tensor x = random_tensor({2, 3, 4}, rng, -3, 30);
  for (const int opset : {11, 13}) {
    TestModel model(opset);
    model.input("x", x.shape()).node("Softmax", {"x"}, {"y"}, {{"axis", int64_t{1}}}).output("y");
    Tensor expected(DType::kF32, x.shape());
    for (int64_t i = 0; i < x.size(); ++i) {
      double sum = 0;
      for (int64_t k = 0; k < x.size(); ++k) {
        const bool together = k / 12 == i / 12 && (opset < 13 || k % 4 == i % 4);
        if (together) sum += std::exp(x.at(k) - x.at(i));
      }
      expected.set(i, 1 / sum);
    }
    EXPECT_LT(relative_error(run_optimized(model.graph(), {x})[0], expected), 1e-5);
  }
}

TEST(batch_norm, equals_its_definition) {
  Rng rng(52);
  const Tensor x = random_tensor({2, 3, 2, 2}, rng);
  std::vector<Tensor> p;
  for (int i = 0; i < 4; ++i) p.push_back(random_tensor({3}, rng, 0.5, 2));
  Tensor expected(DType::kF32, x.shape());
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t c = i / 4 % 3;
    expected.set(i,
                 (x.at(i) - p[2].at(c)) / std::sqrt(p[3].at(c) + 0.01) * p[0].at(c) + p[1].at(c));
  }
  TestModel constant, given;
  given.input("x", x.shape());
  constant.input("x", x.shape());
  const char* names[] = {"s", "b", "m", "v"};
  for (int i = 0; i < 4; ++i) {
    constant.constant(names[i], p[static_cast<size_t>(i)]);
    given.input(names[i], {3});
  }
  const std::vector<std::string> inputs = {"x", "s", "b", "m", "v"};
  constant.node("BatchNormalization", inputs, {"y"}, {{"epsilon", 0.01f}}).output("y");
  given.node("BatchNormalization", inputs, {"y"}, {{"epsilon", 0.01f}}).output("y");
  EXPECT_LT(relative_error(run_optimized(constant.graph(), {x})[0], expected), 1e-5);
  EXPECT_LT(relative_error(run_optimized(given.graph(), {x, p[0], p[1], p[2], p[3]})[0], expected),
            1e-5);
}

}  // namespace
}  // namespace hone::graph
