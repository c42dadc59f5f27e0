// Split where a run says how many elements there are, or how long the parts are.
#include <gtest/gtest.h>

#include "hone/graph/reference_testing.h"
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

// Expects that a run with these inputs ends with the error about its lengths.
void expect_wrong_lengths(const Graph& graph, const std::vector<Tensor>& inputs) {
  const auto found = run_reference(graph, inputs);
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.status().message().find("the lengths of its parts are negative, or do not add up "
                                          "to the extent of axis 0 in this run"),
            std::string::npos)
      << found.status().message();
}

TEST(split, lengths_that_the_model_gives_are_those_of_all_elements) {
  TestModel m(18);
  m.input("mask", {8}, DType::kBool).input("x", {8, 2});
  m.node("Compress", {"x", "mask"}, {"chosen"}, {{"axis", int64_t{0}}});
  m.constant("lengths", ints({2, 3})).node("Split", {"chosen", "lengths"}, {"a", "b"});
  const Graph graph = m.output("b").graph();
  const Tensor x = floats({8, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
  const auto found = run_optimized(graph, {first_of_8(5), x});
  EXPECT_EQ(relative_error(found[0], floats({3, 2}, {5, 6, 7, 8, 9, 10})), 0);
  for (const int64_t count : {0, 2, 4, 7}) expect_wrong_lengths(graph, {first_of_8(count), x});
}

TEST(split, lengths_of_no_elements) {
  TestModel m = chosen_elements();
  m.constant("lengths", ints({0, 3})).node("Split", {"chosen", "lengths"}, {"a", "b"});
  const auto found = run_optimized(m.output("a").output("b").graph(), {first_of_8(3), kX});
  EXPECT_EQ(found[0].shape(), Shape{0});
  EXPECT_EQ(relative_error(found[1], floats({3}, {1, 2, 3})), 0);
}

TEST(split, lengths_that_a_run_computes_are_those_of_all_elements) {
  TestModel m(18);
  m.input("x", {8}).input("lengths", {3}, DType::kI64);
  m.node("Split", {"x", "lengths"}, {"a", "b", "c"}).output("a").output("b").output("c");
  const Graph graph = m.graph();
  expect_wrong_lengths(graph, {kX, ints({3, 0, 4})});
  expect_wrong_lengths(graph, {kX, ints({3, 3, 3})});
  expect_wrong_lengths(graph, {kX, ints({-1, 6, 3})});
  expect_wrong_lengths(graph, {kX, ints({9, 0, -1})});
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
