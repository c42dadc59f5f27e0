#include "hone/commands/check/random_inputs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/graph/test_model.h"

namespace hone {
namespace {

using graph::TestModel;

IntegerRange range_of(const TestModel& model) { return integer_ranges(model.graph())[0]; }

TEST(random_inputs, an_index_is_within_the_axis_that_it_is_for) {
  Rng rng(1);
  TestModel model;
  model.input("ids", {1, 4}, DType::kI64).constant("table", graph::random_tensor({50, 3}, rng));
  model.constant("flat", graph::ints({4}));
  model.node("Reshape", {"ids", "flat"}, {"r"}).node("Gather", {"table", "r"}, {"y"}).output("y");
  const IntegerRange range = range_of(model);
  EXPECT_EQ(range.low, 0);
  EXPECT_EQ(range.high, 49);
  const auto inputs = draw_inputs(model.graph(), integer_ranges(model.graph()), Draw::kNormal, 7);
  bool large = false;
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_GE(inputs[0].at(i), 0);
    EXPECT_LT(inputs[0].at(i), 50);
    large |= inputs[0].at(i) > 1;
  }
  EXPECT_TRUE(large);
}

TEST(random_inputs, the_shortest_of_several_axes_counts) {
  Rng rng(1);
  TestModel model;
  model.input("ids", {2}, DType::kI64);
  model.constant("a", graph::random_tensor({50, 3}, rng))
      .constant("b", graph::random_tensor({3, 7}, rng));
  model.node("Gather", {"a", "ids"}, {"x"}).output("x");
  model.node("Gather", {"b", "ids"}, {"y"}, {{"axis", int64_t{1}}}).output("y");
  EXPECT_EQ(range_of(model).high, 6);
}

TEST(random_inputs, what_becomes_an_index_by_arithmetic_is_0_or_1) {
  Rng rng(1);
  TestModel model;
  model.input("ids", {2}, DType::kI64);
  model.constant("a", graph::random_tensor({50, 3}, rng)).constant("two", graph::ints({2}));
  model.node("Mul", {"ids", "two"}, {"i"}).node("Gather", {"a", "i"}, {"y"}).output("y");
  EXPECT_EQ(range_of(model).high, 1);
}

TEST(random_inputs, bytes_are_any_and_masks_are_0_or_1) {
  TestModel bytes, mask;
  bytes.input("x", {4}, DType::kU8);
  bytes.node("Cast", {"x"}, {"y"}, {{"to", int64_t{1}}}).output("y");
  EXPECT_EQ(range_of(bytes).high, 255);
  mask.input("x", {4}, DType::kI64);
  mask.node("Cast", {"x"}, {"y"}, {{"to", int64_t{1}}}).output("y");
  EXPECT_EQ(range_of(mask).high, 1);
}

TEST(random_inputs, floats_are_of_several_magnitudes) {
  TestModel model;
  model.input("x", {1000}).node("Relu", {"x"}, {"y"}).output("y");
  const graph::Graph graph = model.graph();
  const auto ranges = integer_ranges(graph);
  const Tensor x = draw_inputs(graph, ranges, Draw::kMagnitudes, 3)[0];
  int small = 0, large = 0;
  for (int64_t i = 0; i < x.size(); ++i) {
    small += std::abs(x.at(i)) < 0.01 ? 1 : 0;
    large += std::abs(x.at(i)) > 5 ? 1 : 0;
  }
  EXPECT_GT(small, 50);
  EXPECT_GT(large, 10);
  const Tensor positive = draw_inputs(graph, ranges, Draw::kPositive, 3)[0];
  for (int64_t i = 0; i < positive.size(); ++i) {
    EXPECT_GE(positive.at(i), 0);
    EXPECT_LT(positive.at(i), 1);
  }
}

TEST(random_inputs, repeat_with_their_seed) {
  const Shape shape = {4, 5};
  const Tensor a = random_input(DType::kF32, shape, 7), b = random_input(DType::kF32, shape, 7),
               c = random_input(DType::kF32, shape, 8);
  bool differs = false;
  for (int64_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a.at(i), b.at(i));
    differs = differs || a.at(i) != c.at(i);
  }
  EXPECT_TRUE(differs);
}

}  // namespace
}  // namespace hone
