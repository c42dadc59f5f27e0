#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

void expect_integers(const Tensor& actual, const Shape& shape, const std::vector<int64_t>& values) {
  ASSERT_EQ(actual.dtype(), DType::kI64);
  ASSERT_EQ(actual.shape(), shape);
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(actual.as<int64_t>()[i], values[i]) << "at " << i;
}

TEST(varying, non_zero_has_the_shape_that_the_data_gives_it) {
  TestModel m(17);
  m.input("x", {2, 3}).node("NonZero", {"x"}, {"y"}).output("y");
  const Graph graph = m.graph();
  expect_integers(run_optimized(graph, {floats({2, 3}, {0, 1, 0, 2, 0, 3})})[0], {2, 3},
                  {0, 1, 1, 1, 0, 2});
  expect_integers(run_optimized(graph, {floats({2, 3}, {0, 0, 0, 0, 0, 0})})[0], {2, 0}, {});
  expect_integers(run_optimized(graph, {floats({2, 3}, {1, 1, 1, 1, 1, 1})})[0], {2, 6},
                  {0, 0, 0, 1, 1, 1, 0, 1, 2, 0, 1, 2});
}

// Operators on such a value know its shape, too: they rearrange it, look up elements, ask for its
// shape.
TEST(varying, followers_carry_the_shape) {
  TestModel m(17);
  m.input("x", {4})
      .constant("t", floats({4, 2}, {0, 1, 2, 3, 4, 5, 6, 7}))
      .constant("row", ints({0}))
      .node("NonZero", {"x"}, {"n"})
      .node("Transpose", {"n"}, {"y"})
      .node("Gather", {"n", "row"}, {"one"})
      .constant("axes", ints({0}))
      .node("Squeeze", {"one", "axes"}, {"list"})
      .node("Gather", {"t", "list"}, {"rows"})
      .node("Neg", {"rows"}, {"z"})
      .node("Shape", {"z"}, {"s"})
      .output("y")
      .output("z")
      .output("s");
  const auto results = run_optimized(m.graph(), {floats({4}, {0, 5, 0, 6})});
  expect_integers(results[0], {2, 1}, {1, 3});
  EXPECT_EQ(relative_error(results[1], floats({2, 2}, {-2, -3, -6, -7})), 0);
  expect_integers(results[2], {2}, {2, 2});
}

TEST(varying, of_constants_it_is_known_at_once) {
  TestModel m(17);
  m.constant("x", floats({2, 2}, {0, 1, 1, 0}))
      .node("NonZero", {"x"}, {"n"})
      .node("Shape", {"n"}, {"s"})
      .node("Reshape", {"n", "s"}, {"y"})
      .output("y");
  expect_integers(run_optimized(m.graph(), {})[0], {2, 2}, {0, 1, 1, 0});
}

TEST(varying, padding_stands_behind_what_there_is) {
  TestModel m(17);
  m.input("x", {4})
      .node("NonZero", {"x"}, {"n"})
      .node("Pad", {"n", "pads"}, {"y"})
      .constant("pads", ints({0, 1, 0, 1}))
      .output("y");
  expect_integers(run_optimized(m.graph(), {floats({4}, {0, 5, 0, 7})})[0], {1, 4}, {0, 1, 3, 0});
}

// Detectors treat the boxes of a class like this: they choose by score, take the best and join the
// classes.
TEST(varying, choosing_the_best_and_joining_follow_the_extents) {
  TestModel m(17);
  m.input("x", {6})
      .constant("half", floats({1}, {0.5F}))
      .constant("three", ints({3}))
      .constant("axis", ints({1}))
      .constant("one", ints({1}))
      .constant("zero", ints({0}))
      .constant("two", ints({2}));
  m.node("Greater", {"x", "half"}, {"mask"})
      .node("NonZero", {"mask"}, {"places"})
      .node("Transpose", {"places"}, {"rows"})
      .node("GatherND", {"x", "rows"}, {"chosen"})
      .node("Shape", {"chosen"}, {"count"})
      .node("Concat", {"count", "three"}, {"both"}, {{"axis", int64_t{0}}})
      .node("ReduceMin", {"both"}, {"k"}, {{"keepdims", int64_t{1}}})
      .node("TopK", {"chosen", "k"}, {"best", "which"})
      .node("ConstantOfShape", {"count"}, {"label"})
      .node("Gather", {"label", "which"}, {"labels"})
      .node("Concat", {"best", "chosen", "labels"}, {"all"}, {{"axis", int64_t{0}}})
      .node("ReduceMax", {"chosen"}, {"most"}, {{"keepdims", int64_t{0}}})
      .node("Slice", {"all", "zero", "two", "zero"}, {"head"})
      .output("all")
      .output("most")
      .output("head");
  const Tensor some = floats({6}, {0.6F, 0.1F, 0.9F, 0.7F, 0.2F, 0.8F});
  const std::vector<Tensor> found = run_optimized(m.graph(), {some});
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(
      relative_error(found[0], floats({10}, {0.9F, 0.8F, 0.7F, 0.6F, 0.9F, 0.7F, 0.8F, 0, 0, 0})),
      0);
  EXPECT_EQ(found[1].at(0), some.at(2));
  EXPECT_EQ(relative_error(found[2], floats({2}, {0.9F, 0.8F})), 0);
  const std::vector<Tensor> one = run_optimized(m.graph(), {floats({6}, {0, 0, 0, 0, 0.75F, 0})});
  EXPECT_EQ(relative_error(one[0], floats({3}, {0.75F, 0.75F, 0})), 0);
  EXPECT_EQ(relative_error(one[2], floats({2}, {0.75F, 0.75F})), 0);
  const std::vector<Tensor> none = run_optimized(m.graph(), {floats({6}, {0, 0, 0, 0, 0, 0})});
  EXPECT_EQ(none[0].shape(), (Shape{0}));
}

// Before opset 10 k was an attribute.
TEST(varying, the_best_of_old_opsets_are_refused) {
  TestModel m(9);
  m.input("x", {6}).node("NonZero", {"x"}, {"places"});
  m.node("Cast", {"places"}, {"data"}, {{"to", int64_t{1}}});
  m.node("TopK", {"data"}, {"best", "which"}, {{"k", int64_t{1}}}).output("best");
  const Result<Graph> graph = m.import();
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.status().message().find("k as an attribute"), std::string::npos)
      << graph.status().message();
}

TEST(varying, operands_that_do_not_fit_are_refused) {
  const auto refusal = [](const std::vector<std::string>& operands) {
    TestModel m(17);
    m.input("x", {6}).input("scalar", {}, DType::kI64).node("NonZero", {"x"}, {"places"});
    m.node("GatherND", operands, {"y"}).output("y");
    const Result<Graph> graph = m.import();
    return graph.ok() ? "" : graph.status().message();
  };
  EXPECT_NE(refusal({"places", "scalar"}).find("indices without a dimension"), std::string::npos);
  EXPECT_NE(refusal({"places"}).find("operands, expected 2"), std::string::npos);
}

// Graph networks choose edges, and add what comes along them to the nodes.
TEST(varying, reshapes_slices_and_scatters_follow_the_extents) {
  TestModel m(18);
  m.input("mask", {6}).input("messages", {6, 2}).input("sums", {3, 2});
  m.constant("targets", ints({0, 1, 2, 0, 1, 2}))
      .constant("flat", ints({-1}))
      .constant("column", ints({-1, 1}))
      .constant("start", ints({0, 0}))
      .constant("pairs", ints({2, -1}))
      .node("NonZero", {"mask"}, {"found"})
      .node("Reshape", {"found", "flat"}, {"rows"})
      .node("Gather", {"messages", "rows"}, {"chosen"})
      .node("Gather", {"targets", "rows"}, {"to"})
      .node("Reshape", {"to", "column"}, {"to_column"})
      .node("Shape", {"chosen"}, {"shape"})
      .node("Expand", {"to_column", "shape"}, {"places"})
      .node("Slice", {"messages", "start", "shape"}, {"first"});
  for (const char* reduction : {"add", "mul", "max", "min"}) {
    m.node("ScatterElements", {"sums", "places", "chosen"}, {reduction},
           {{"reduction", std::string(reduction)}})
        .output(reduction);
  }
  m.node("Reshape", {"chosen", "pairs"}, {"reshaped"}).output("reshaped").output("first");
  const Graph graph = m.graph();
  const Tensor messages = floats({6, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const Tensor sums = floats({3, 2}, {10, 10, 10, 10, 10, 10});
  const std::vector<Tensor> found =
      run_optimized(graph, {floats({6}, {1, 0, 0, 1, 1, 0}), messages, sums});
  EXPECT_EQ(relative_error(found[0], floats({3, 2}, {18, 20, 19, 20, 10, 10})), 0);
  EXPECT_EQ(relative_error(found[1], floats({3, 2}, {70, 160, 90, 100, 10, 10})), 0);
  EXPECT_EQ(relative_error(found[2], floats({3, 2}, {10, 10, 10, 10, 10, 10})), 0);
  EXPECT_EQ(relative_error(found[3], floats({3, 2}, {1, 2, 9, 10, 10, 10})), 0);
  EXPECT_EQ(relative_error(found[4], floats({2, 3}, {1, 2, 7, 8, 9, 10})), 0);
  EXPECT_EQ(relative_error(found[5], floats({3, 2}, {1, 2, 3, 4, 5, 6})), 0);
  const std::vector<Tensor> none =
      run_optimized(graph, {floats({6}, {0, 0, 0, 0, 0, 0}), messages, sums});
  EXPECT_EQ(relative_error(none[0], sums), 0);
  EXPECT_EQ(none[4].shape(), (Shape{2, 0}));
  EXPECT_EQ(none[5].shape(), (Shape{0, 2}));
}

TEST(varying, extents_that_do_not_depend_on_data_are_numbers) {
  TestModel m(18);
  m.input("mask", {6}).input("messages", {6, 3}).constant("axes", ints({0}));
  m.constant("last", ints({-1})).constant("zero", Tensor(DType::kI64, {}));
  m.node("NonZero", {"mask"}, {"found"}).node("Squeeze", {"found", "axes"}, {"rows"});
  m.node("Gather", {"messages", "rows"}, {"chosen"}).node("Relu", {"chosen"}, {"positive"});
  m.node("Shape", {"positive"}, {"shape"}).node("Gather", {"shape", "last"}, {"width"});
  m.node("Squeeze", {"width"}, {"limit"});
  m.node("Range", {"zero", "limit", "step"}, {"y"}).output("y");
  Tensor step(DType::kI64, {});
  step.set(0, 1);
  m.constant("step", step);
  const Graph graph = m.graph();
  ASSERT_TRUE(graph.value(graph.outputs[0]).constant) << "it needs no run";
  expect_integers(*graph.value(graph.outputs[0]).constant, {3}, {0, 1, 2});
}

TEST(varying, a_slice_may_have_ends_of_which_some_are_numbers) {
  TestModel m(18);
  m.input("mask", {3}).input("x", {3, 5}).constant("row", floats({1, 2}, {10, 20}));
  m.constant("start", ints({0, 0})).constant("two", ints({2})).constant("one", ints({1}));
  m.node("NonZero", {"mask"}, {"found"}).node("Shape", {"found"}, {"sizes"});
  m.node("Gather", {"sizes", "one"}, {"count"});
  m.node("Concat", {"count", "two"}, {"ends"}, {{"axis", int64_t{0}}});
  m.node("Slice", {"x", "start", "ends"}, {"part"}).node("Add", {"part", "row"}, {"y"});
  m.output("y");
  std::vector<float> numbers(15);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const Tensor y = run_optimized(m.graph(), {floats({3}, {1, 0, 1}), floats({3, 5}, numbers)})[0];
  EXPECT_EQ(y.shape(), (Shape{2, 2}));
  EXPECT_EQ(relative_error(y, floats({2, 2}, {10, 21, 15, 26})), 0);
}

TEST(varying, a_slice_may_begin_where_a_run_says) {
  TestModel m(18);
  m.input("x", {5, 2}).input("s", {1}, DType::kI64).input("e", {1}, DType::kI64);
  m.constant("axes", ints({0})).constant("two", ints({2}));
  m.node("Slice", {"x", "s", "e"}, {"part"}).node("Slice", {"x", "s", "e", "axes", "two"}, {"odd"});
  const Graph graph = m.output("part").output("odd").graph();
  const Tensor x = floats({5, 2}, {0, 1, 10, 11, 20, 21, 30, 31, 40, 41});
  const auto run = [&](int64_t s, int64_t e) {
    return run_optimized(graph, {x, ints({s}), ints({e})});
  };
  EXPECT_EQ(relative_error(run(1, 3)[0], floats({2, 2}, {10, 11, 20, 21})), 0);
  EXPECT_EQ(relative_error(run(-4, -1)[1], floats({2, 2}, {10, 11, 30, 31})), 0);
  EXPECT_EQ(relative_error(run(-9, INT64_MAX)[1], floats({3, 2}, {0, 1, 20, 21, 40, 41})), 0);
  EXPECT_EQ(run(4, 2)[0].shape(), (Shape{0, 2}));
  EXPECT_EQ(run(7, 9)[0].shape(), (Shape{0, 2}));
}

// The result has as many rows in every run, as nodes say by which number the end exceeds the begin.
TEST(varying, a_slice_to_its_begin_and_a_number_has_one_shape) {
  const auto shape_of = [](const std::function<void(TestModel&)>& add_end) {
    TestModel m(18);
    m.input("x", {5, 2}).input("s", {1}, DType::kI64).input("e", {1}, DType::kI64);
    m.constant("one", ints({1})).constant("two", ints({2})).constant("minus", ints({-1}));
    add_end(m);
    const Graph graph = m.node("Slice", {"x", "begin", "end"}, {"y"}).output("y").graph();
    return graph.value(graph.outputs[0]).shape;
  };
  const Shape two_rows = {2, 2}, all_rows = {5, 2};
  const auto same = [](TestModel& m) -> TestModel& { return m.node("Identity", {"s"}, {"begin"}); };
  EXPECT_EQ(shape_of([&](TestModel& m) {
              same(m).node("Add", {"two", "begin"}, {"end"});
            }),
            two_rows);
  EXPECT_EQ(shape_of([&](TestModel& m) {
              same(m).node("Sub", {"s", "minus"}, {"next"}).node("Add", {"next", "one"}, {"end"});
            }),
            two_rows);
  EXPECT_EQ(shape_of([&](TestModel& m) {  // e + s, e + s + 2
              m.node("Add", {"s", "e"}, {"begin"}).node("Add", {"s", "two"}, {"more"});
              m.node("Add", {"e", "more"}, {"end"});
            }),
            two_rows);
  EXPECT_EQ(shape_of([&](TestModel& m) {  // by way of 32 bits
              m.node("Cast", {"s"}, {"s32"}, {{"to", int64_t{6}}});
              m.node("Cast", {"two"}, {"two32"}, {{"to", int64_t{6}}});
              m.node("Add", {"s32", "two32"}, {"e32"});
              m.node("Cast", {"s32"}, {"begin"}, {{"to", int64_t{7}}});
              m.node("Cast", {"e32"}, {"end"}, {{"to", int64_t{7}}});
            }),
            two_rows);
  EXPECT_EQ(shape_of([&](TestModel& m) { same(m).node("Add", {"e", "two"}, {"end"}); }), all_rows);
  EXPECT_EQ(shape_of([&](TestModel& m) { same(m).node("Mul", {"s", "two"}, {"end"}); }), all_rows);
  EXPECT_EQ(shape_of([&](TestModel& m) {  // a conversion to fewer bits does not keep all numbers
              same(m).node("Cast", {"s"}, {"s32"}, {{"to", int64_t{6}}});
              m.node("Cast", {"s32"}, {"s64"}, {{"to", int64_t{7}}});
              m.node("Add", {"s64", "two"}, {"end"});
            }),
            all_rows);
  EXPECT_EQ(shape_of([&](TestModel& m) {  // more than there are
              same(m).constant("nine", ints({9})).node("Add", {"s", "nine"}, {"end"});
            }),
            all_rows);
}

TEST(varying, negative_places_count_from_the_end_of_the_run) {
  TestModel m(18);
  m.input("mask", {4}).input("x", {4}).constant("axes", ints({0})).constant("last", ints({-1}));
  m.constant("update", floats({1}, {5}));
  m.node("NonZero", {"mask"}, {"found"}).node("Squeeze", {"found", "axes"}, {"rows"});
  m.node("Gather", {"x", "rows"}, {"chosen"});
  m.node("ScatterElements", {"chosen", "last", "update"}, {"y"}).output("y");
  const Tensor y =
      run_optimized(m.graph(), {floats({4}, {1, 1, 0, 0}), floats({4}, {1, 2, 3, 4})})[0];
  EXPECT_EQ(y.shape(), (Shape{2}));
  EXPECT_EQ(relative_error(y, floats({2}, {1, 5})), 0);
}

// The index of a Gather has elements to find, too: twice as many with each one.
TEST(varying, elements_that_are_gathered_again_and_again_are_not_looked_for_for_ever) {
  TestModel m(18);
  m.input("mask", {1}).constant("one", ints({1})).constant("zeros", ints({0, 0, 0}));
  m.node("NonZero", {"mask"}, {"found"}).node("Shape", {"found"}, {"sizes"});
  m.node("Gather", {"sizes", "one"}, {"count"});
  m.node("Concat", {"zeros", "count"}, {"v0"}, {{"axis", int64_t{0}}});
  for (int i = 0; i < 31; ++i) {
    const std::string from = "v" + std::to_string(i);
    m.node("Gather", {from, from}, {"v" + std::to_string(i + 1)});
  }
  m.output("v31");
  expect_integers(run_optimized(m.graph(), {floats({1}, {1})})[0], {4}, {0, 0, 0, 0});
}

TEST(varying, unique_and_compress) {
  TestModel m(17);
  m.input("x", {6})
      .input("c", {3}, DType::kBool)
      .node("Unique", {"x"}, {"y", "first", "which", "times"})
      .node("Compress", {"x", "c"}, {"z"})
      .output("y")
      .output("first")
      .output("which")
      .output("times")
      .output("z");
  Tensor condition(DType::kBool, {3});
  condition.set(0, 1);
  condition.set(2, 1);
  const auto results = run_optimized(m.graph(), {floats({6}, {2, 1, 1, 3, 4, 3}), condition});
  EXPECT_EQ(relative_error(results[0], floats({4}, {1, 2, 3, 4})), 0);
  expect_integers(results[1], {4}, {1, 0, 3, 4});
  expect_integers(results[2], {6}, {1, 0, 0, 2, 3, 2});
  expect_integers(results[3], {4}, {2, 1, 2, 1});
  EXPECT_EQ(relative_error(results[4], floats({2}, {2, 1})), 0);
}

// NaN equals NaN and is greater than all numbers.
TEST(varying, unique_with_nan) {
  const auto unique = [](int64_t sorted) {
    TestModel m(17);
    m.input("x", {7});
    m.node("Unique", {"x"}, {"y", "first", "which", "times"}, {{"sorted", sorted}});
    m.output("first").output("which").output("times").output("y");
    return run_optimized(m.graph(), {floats({7}, {3, NAN, 1, -NAN, 3, 2, -0.F})});
  };
  const auto in_order = unique(1), as_found = unique(0);
  expect_integers(in_order[0], {5}, {6, 2, 5, 0, 1});
  expect_integers(in_order[1], {7}, {3, 4, 1, 4, 3, 2, 0});
  expect_integers(in_order[2], {5}, {1, 1, 1, 2, 2});
  EXPECT_TRUE(std::isnan(in_order[3].at(4)));
  expect_integers(as_found[0], {5}, {0, 1, 2, 5, 6});
  expect_integers(as_found[1], {7}, {0, 1, 2, 1, 0, 3, 4});
  EXPECT_TRUE(std::isnan(as_found[3].at(1)));
}

}  // namespace
}  // namespace hone::graph
