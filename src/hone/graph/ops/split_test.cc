// Split where a run says how many elements there are, or how long the parts are.
#include <gtest/gtest.h>

#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

const Tensor kX = floats({8}, {1, 2, 3, 4, 5, 6, 7, 8});

// A model in which `chosen` are the elements of x [8] that a mask names.
TestModel chosen_elements() {
  TestModel m(18);
  m.input("mask", {8}, DType::kBool).input("x", {8});
  m.node("Compress", {"x", "mask"}, {"chosen"}, {{"axis", int64_t{0}}});
  return m;
}

Tensor first_of_8(int64_t count) {
  Tensor mask(DType::kBool, {8});
  for (int64_t i = 0; i < count; ++i) mask.set(i, 1);
  return mask;
}

TEST(split, equal_parts_of_as_many_elements_as_there_are) {
  TestModel m = chosen_elements();
  m.node("Split", {"chosen"}, {"a", "b", "c"}, {{"num_outputs", int64_t{3}}});
  const Graph graph = m.output("a").output("b").output("c").graph();
  const auto seven = run_optimized(graph, {first_of_8(7), kX});
  EXPECT_EQ(relative_error(seven[0], floats({3}, {1, 2, 3})), 0);
  EXPECT_EQ(relative_error(seven[1], floats({3}, {4, 5, 6})), 0);
  EXPECT_EQ(relative_error(seven[2], floats({1}, {7})), 0);
  const auto three = run_optimized(graph, {first_of_8(3), kX});
  EXPECT_EQ(relative_error(three[2], floats({1}, {3})), 0);
}

TEST(split, lengths_that_the_model_gives_of_as_many_elements_as_there_are) {
  TestModel m = chosen_elements();
  m.constant("lengths", ints({2, 3})).node("Split", {"chosen", "lengths"}, {"a", "b"});
  const auto found = run_optimized(m.output("a").output("b").graph(), {first_of_8(5), kX});
  EXPECT_EQ(relative_error(found[0], floats({2}, {1, 2})), 0);
  EXPECT_EQ(relative_error(found[1], floats({3}, {3, 4, 5})), 0);
}

TEST(split, lengths_that_a_run_computes) {
  TestModel m(18);
  m.input("x", {8}).input("lengths", {3}, DType::kI64);
  m.node("Split", {"x", "lengths"}, {"a", "b", "c"}).output("a").output("b").output("c");
  const Graph graph = m.graph();
  const auto found = run_optimized(graph, {kX, ints({3, 0, 5})});
  EXPECT_EQ(relative_error(found[0], floats({3}, {1, 2, 3})), 0);
  EXPECT_EQ(found[1].shape(), Shape{0});
  EXPECT_EQ(relative_error(found[2], floats({5}, {4, 5, 6, 7, 8})), 0);
}

TEST(split, as_many_lengths_as_results) {
  TestModel m(18);
  m.input("x", {8}).input("lengths", {3}, DType::kI64);
  const Result<Graph> graph = m.node("Split", {"x", "lengths"}, {"a", "b"}).output("a").import();
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.status().message().find("lengths i64 [3] for 2 results"), std::string::npos)
      << graph.status().message();
}

}  // namespace
}  // namespace hone::graph
