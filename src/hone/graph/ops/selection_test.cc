#include <gtest/gtest.h>

#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

AttributeList topk_attributes(bool largest) {
  return {{"axis", int64_t{1}}, {"largest", int64_t{largest}}};
}

TEST(top_k, gives_equal_values_in_their_order) {
  const Tensor x = floats({2, 4}, {1, 3, 3, 2, 5, 5, 5, 4});
  for (const bool largest : {true, false}) {
    TestModel model;
    model.input("x", {2, 4}).constant("k", ints({3}));
    model.node("TopK", {"x", "k"}, {"v", "i"}, topk_attributes(largest)).output("v").output("i");
    const std::vector<Tensor> found = run_optimized(model.graph(), {x});
    const Tensor values =
        largest ? floats({2, 3}, {3, 3, 2, 5, 5, 5}) : floats({2, 3}, {1, 2, 3, 4, 5, 5});
    const Tensor places = largest ? ints({1, 2, 3, 0, 1, 2}) : ints({0, 3, 1, 3, 0, 1});
    EXPECT_EQ(relative_error(found[0], values), 0);
    EXPECT_EQ(relative_error(found[1], places.reshaped({2, 3})), 0);
  }
}

TEST(top_k, computes_one_result_without_the_other) {
  const Tensor x = floats({1, 4}, {1, 3, 4, 2});
  for (const char* values : {"", "v"}) {
    TestModel places;
    places.input("x", {1, 4}).constant("k", ints({2}));
    places.node("TopK", {"x", "k"}, {values, "i"}).output("i");
    EXPECT_EQ(relative_error(run_optimized(places.graph(), {x})[0], ints({2, 1}).reshaped({1, 2})),
              0);
  }
  TestModel values;
  values.input("x", {1, 4}).constant("k", ints({2}));
  values.node("TopK", {"x", "k"}, {"v"}).output("v");
  EXPECT_EQ(relative_error(run_optimized(values.graph(), {x})[0], floats({1, 2}, {4, 3})), 0);
}

TEST(top_k, of_more_than_there_is_fails) {
  TestModel model;
  model.input("x", {1, 4}).constant("k", ints({5}));
  model.node("TopK", {"x", "k"}, {"v", "i"}).output("v");
  const auto graph = model.import();
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.status().message().find("k is 5 of 4 elements"), std::string::npos)
      << graph.status().message();
}

TEST(arg_max, chooses_the_first_or_the_last_of_equals) {
  const Tensor x = floats({2, 3}, {2, 7, 7, 1, 1, 0});
  for (const bool last : {false, true}) {
    TestModel model;
    model.input("x", {2, 3});
    model.node(
        "ArgMax", {"x"}, {"y"},
        {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}, {"select_last_index", int64_t{last}}});
    model.output("y");
    EXPECT_EQ(
        relative_error(run_optimized(model.graph(), {x})[0], last ? ints({2, 1}) : ints({1, 0})),
        0);
  }
}

TEST(hardmax, before_opset_13_takes_all_dimensions_from_the_axis_on) {
  const Tensor x = floats({2, 2, 2}, {1, 2, 4, 3, 0, 9, 9, 1});
  const std::vector<std::vector<float>> expected = {{0, 0, 1, 0, 0, 1, 0, 0},
                                                    {0, 0, 1, 1, 0, 1, 1, 0}};
  for (const int opset : {11, 13}) {
    TestModel model(opset);
    model.input("x", x.shape()).node("Hardmax", {"x"}, {"y"}, {{"axis", int64_t{1}}}).output("y");
    EXPECT_EQ(relative_error(run_optimized(model.graph(), {x})[0],
                             floats({2, 2, 2}, expected[opset < 13 ? 0 : 1])),
              0);
  }
}

}  // namespace
}  // namespace hone::graph
