// Operators that reduce, order, choose and write elements of values whose shape depends on data.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "hone/graph/reference_testing.h"
#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

// A model in which `chosen` are the rows of x [6] or of another shape that a mask [6] names, and
// `places` [n, 1] where these stand.
TestModel chosen_rows(const Shape& shape) {
  TestModel m(18);
  m.input("mask", {6}).input("x", shape).constant("flat", ints({-1}));
  m.node("NonZero", {"mask"}, {"found"}).node("Transpose", {"found"}, {"places"});
  m.node("Reshape", {"found", "flat"}, {"rows"}).node("Gather", {"x", "rows"}, {"chosen"});
  return m;
}

const Tensor kSome = floats({6}, {0, 1, 0, 1, 1, 0});
const Tensor kNone = floats({6}, {0, 0, 0, 0, 0, 0});

bool has_loop(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& node) { return node.loop != nullptr; });
}

void expect_integers(const Tensor& actual, const std::vector<int64_t>& values) {
  ASSERT_EQ(actual.dtype(), DType::kI64);
  ASSERT_EQ(actual.size(), std::ssize(values));
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(actual.as<int64_t>()[i], values[i]) << "at " << i;
}

TEST(varying_places, reductions_do_not_see_what_is_not_there) {
  TestModel m = chosen_rows({6});
  for (const char* type : {"ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare"})
    m.node(type, {"chosen"}, {type}, {{"keepdims", int64_t{0}}}).output(type);
  for (const char* type : {"ArgMax", "ArgMin"}) {
    m.node(type, {"chosen"}, {type}, {{"keepdims", int64_t{0}}}).output(type);
    const std::string last = std::string("last_") + type;
    m.node(type, {"chosen"}, {last}, {{"keepdims", int64_t{0}}, {"select_last_index", int64_t{1}}})
        .output(last);
  }
  const Graph graph = m.graph();
  const auto found = run_optimized(graph, {kSome, floats({6}, {9, -2, 9, -2, -4, -9})});
  const std::vector<float> expected = {-16, 8, std::sqrt(24.0F), 24};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_FLOAT_EQ(found[i].at(0), expected[i]);
  for (const auto& [i, place] : {std::pair{4, 0}, {5, 1}, {6, 2}, {7, 2}})
    EXPECT_EQ(found[static_cast<size_t>(i)].at(0), place) << i;
  const float least = -std::numeric_limits<float>::infinity();
  const auto low = run_optimized(graph, {kSome, floats({6}, {0, least, 0, least, least, 0})});
  EXPECT_EQ(low[4].at(0), 0);
  EXPECT_EQ(low[5].at(0), 2) << "what fills the rest is as small, and comes later";
}

TEST(varying_places, logarithms_and_means_of_integers_do_not_either) {
  TestModel m = chosen_rows({6});
  for (const char* type : {"ReduceLogSum", "ReduceLogSumExp"})
    m.node(type, {"chosen"}, {type}, {{"keepdims", int64_t{0}}}).output(type);
  m.node("Cast", {"chosen"}, {"whole"}, {{"to", int64_t{7}}});
  m.node("ReduceMean", {"whole"}, {"mean"}, {{"keepdims", int64_t{0}}}).output("mean");
  m.node("Hardmax", {"chosen"}, {"largest"}, {{"axis", int64_t{0}}}).output("largest");
  const auto found = run_optimized(m.graph(), {kSome, floats({6}, {9, -2, 9, 3, 4, 9})});
  EXPECT_FLOAT_EQ(found[0].at(0), std::log(5.0F));
  EXPECT_FLOAT_EQ(found[1].at(0), std::log(std::exp(-2.0F) + std::exp(3.0F) + std::exp(4.0F)));
  EXPECT_EQ(found[2].at(0), 1) << "5 / 3";
  EXPECT_EQ(relative_error(found[3], floats({3}, {0, 0, 1})), 0);
}

TEST(varying_places, the_lower_triangle_of_the_rows_that_there_are) {
  TestModel m = chosen_rows({6, 2});
  m.node("Trilu", {"chosen"}, {"y"}, {{"upper", int64_t{0}}}).output("y");
  const Tensor x = floats({6, 2}, {9, 9, 1, 2, 9, 9, 3, 4, 5, 6, 9, 9});
  const Tensor y = run_optimized(m.graph(), {kSome, x})[0];
  EXPECT_EQ(relative_error(y, floats({3, 2}, {1, 0, 3, 4, 5, 6})), 0);
}

TEST(varying_places, sums_of_what_comes_before_and_the_size) {
  TestModel m = chosen_rows({6, 2});
  m.constant("axis", ints({0})).node("CumSum", {"chosen", "axis"}, {"up"}).output("up");
  m.node("CumSum", {"chosen", "axis"}, {"down"}, {{"reverse", int64_t{1}}}).output("down");
  m.node("Size", {"chosen"}, {"size"}).output("size");
  m.node("Dropout", {"chosen"}, {"same", "kept"});
  m.node("Transpose", {"chosen"}, {"columns"}).node("Flatten", {"columns"}, {"flat_columns"});
  m.node("Flatten", {"columns"}, {"all"}, {{"axis", int64_t{0}}}).output("all");
  m.output("flat_columns").output("kept");
  const Graph graph = m.graph();
  const Tensor x = floats({6, 2}, {9, 9, 1, 2, 9, 9, 3, 4, 5, 6, 9, 9});
  const auto found = run_optimized(graph, {kSome, x});
  EXPECT_EQ(relative_error(found[0], floats({3, 2}, {1, 2, 4, 6, 9, 12})), 0);
  EXPECT_EQ(relative_error(found[1], floats({3, 2}, {9, 12, 8, 10, 5, 6})), 0);
  EXPECT_EQ(found[2].at(0), 6);
  EXPECT_EQ(relative_error(found[3], floats({1, 6}, {1, 3, 5, 2, 4, 6})), 0);
  EXPECT_EQ(relative_error(found[4], floats({2, 3}, {1, 3, 5, 2, 4, 6})), 0);
  EXPECT_EQ(found[5].shape(), (Shape{3, 2}));
  EXPECT_EQ(run_optimized(graph, {kNone, x})[2].at(0), 0);
}

// data[mask] = values, as exporters write it.
TEST(varying_places, updates_that_are_not_there_write_nothing) {
  TestModel m = chosen_rows({6, 2});
  m.node("Neg", {"chosen"}, {"updates"});
  for (const char* reduction : {"none", "add", "max"}) {
    m.node("ScatterND", {"x", "places", "updates"}, {reduction},
           {{"reduction", std::string(reduction)}})
        .output(reduction);
  }
  const Graph graph = m.graph();
  const Tensor x = floats({6, 2}, {-1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const auto found = run_optimized(graph, {kSome, x});
  EXPECT_EQ(
      relative_error(found[0], floats({6, 2}, {-1, 2, -3, -4, 5, 6, -7, -8, -9, -10, 11, 12})), 0);
  EXPECT_EQ(relative_error(found[1], floats({6, 2}, {-1, 2, 0, 0, 5, 6, 0, 0, 0, 0, 11, 12})), 0);
  EXPECT_EQ(relative_error(found[2], x), 0);
  for (const Tensor& y : run_optimized(graph, {kNone, x})) EXPECT_EQ(relative_error(y, x), 0);
}

TEST(varying_places, the_last_of_several_updates_of_a_place_stays) {
  TestModel m = chosen_rows({6, 2});
  m.constant("none", ints({0})).node("Mul", {"places", "none"}, {"first"});
  m.node("ScatterND", {"x", "first", "chosen"}, {"y"}).output("y");
  const Tensor x = floats({6, 2}, {-1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const Tensor y = run_optimized(m.graph(), {kSome, x})[0];
  EXPECT_EQ(relative_error(y, floats({6, 2}, {9, 10, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})), 0);
}

// Rows that data decide, and others of which there are always two.
TEST(varying_places, a_scan_of_operands_with_different_numbers_of_steps_is_an_error) {
  TestModel m(18);
  m.input("mask", {6}).input("x", {6, 1}).input("z", {2, 1}).constant("zero", floats({1}, {0}));
  m.node("NonZero", {"mask"}, {"found"}).constant("flat", ints({-1}));
  m.node("Reshape", {"found", "flat"}, {"rows"}).node("Gather", {"x", "rows"}, {"chosen"});
  m.text(R"(graph { node { op_type: "Scan" input: "zero" input: "chosen" input: "z" output: "total"
    attribute { name: "num_scan_inputs" type: INT i: 2 }
    attribute { name: "body" type: GRAPH g { name: "body"
      input { name: "sum" } input { name: "a" } input { name: "b" } output { name: "next" }
      node { op_type: "Mul" input: "a" input: "b" output: "product" }
      node { op_type: "Add" input: "sum" input: "product" output: "next" } } } } })")
      .output("total");
  const Graph graph = m.graph();
  const Tensor x = floats({6, 1}, {1, 2, 3, 4, 5, 6}), z = floats({2, 1}, {10, 100});
  const auto found = run_optimized(graph, {floats({6}, {0, 1, 0, 1, 0, 0}), x, z});
  EXPECT_EQ(found[0].at(0), 2 * 10 + 4 * 100);
  const auto more = run_reference(graph, {kSome, x, z});
  ASSERT_FALSE(more.ok());
  EXPECT_NE(more.status().message().find(
                "its scanned operands have different numbers of steps in this run: [3] and [2]"),
            std::string::npos)
      << more.status().message();
}

TEST(varying_places, what_is_chosen_may_be_chosen_from) {
  TestModel m = chosen_rows({6});
  m.constant("two", floats({}, {2})).node("Greater", {"chosen", "two"}, {"large"});
  m.node("Compress", {"chosen", "large"}, {"y"}).output("y");
  m.node("Unique", {"chosen"}, {"unique", "first", "inverse", "counts"});
  for (const char* name : {"unique", "first", "inverse", "counts"}) m.output(name);
  const auto found = run_optimized(m.graph(), {kSome, floats({6}, {9, 4, 9, 1, 4, 9})});
  EXPECT_EQ(relative_error(found[0], floats({2}, {4, 4})), 0);
  EXPECT_EQ(relative_error(found[1], floats({2}, {1, 4})), 0);
  expect_integers(found[2], {1, 0});
  expect_integers(found[3], {1, 0, 1});
  expect_integers(found[4], {1, 2});
}

// An expansion that would read it as a value of its largest shape.

// The sum of the rows so far, and each row, the last one first.
TEST(varying_places, a_scan_has_as_many_steps_as_there_are_rows) {
  TestModel m = chosen_rows({6, 2});
  m.input("start", {2});
  m.text(R"(graph { node { op_type: 'Scan' name: 'scan'
      input: 'start' input: 'chosen' output: 'sum' output: 'reversed'
      attribute { name: 'num_scan_inputs' type: INT i: 1 }
      attribute { name: 'scan_input_directions' type: INTS ints: 1 }
      attribute { name: 'scan_output_directions' type: INTS ints: 1 }
      attribute { name: 'body' type: GRAPH g { name: 'b'
        node { op_type: 'Add' input: 's' input: 'r' output: 't' }
        node { op_type: 'Neg' input: 't' output: 'row' }
        input { name: 's' } input { name: 'r' }
        output { name: 't' } output { name: 'row' } } } } })");
  m.output("sum").output("reversed");
  const Graph graph = m.graph();
  const Tensor x = floats({6, 2}, {9, 9, 1, 2, 9, 9, 3, 4, 5, 6, 9, 9}),
               start = floats({2}, {1, 1});
  const auto found = run_optimized(graph, {kSome, x, start});
  EXPECT_EQ(relative_error(found[0], floats({2}, {10, 13})), 0);
  EXPECT_EQ(relative_error(found[1], floats({3, 2}, {-10, -13, -9, -11, -6, -7})), 0);
  const auto none = run_optimized(graph, {kNone, x, start});
  EXPECT_EQ(relative_error(none[0], start), 0);
  EXPECT_EQ(none[1].shape(), (Shape{0, 2}));
}

// Expects that a run of `y` with so many chosen elements of six ends with an error of this text, or
// gives the first ones in a shape.
void expect_shape_or_error(TestModel& m, int64_t count, const std::optional<Shape>& shape,
                           const std::string& text) {
  SCOPED_TRACE(count);
  Tensor mask(DType::kF32, {6});
  for (int64_t i = 0; i < count; ++i) mask.set(i, 1);
  const Tensor x = floats({6}, {1, 2, 3, 4, 5, 6});
  const Graph graph = m.output("y").graph();
  const auto found = run_reference(graph, {mask, x});
  ASSERT_EQ(found.ok(), shape.has_value());
  if (!shape) {
    EXPECT_NE(found.status().message().find(text), std::string::npos) << found.status().message();
    return;
  }
  EXPECT_EQ((*found)[0].shape(), *shape);
  for (int64_t i = 0; i < count; ++i) EXPECT_EQ((*found)[0].at(i), x.at(i)) << i;
}

TEST(varying_places, a_reshape_to_another_number_of_elements_is_an_error) {
  const char* const kText = "its operand has another number of elements than the shape";
  for (const int64_t count : {0, 4, 6}) {
    TestModel fixed = chosen_rows({6});
    fixed.constant("shape", ints({2, 3})).node("Reshape", {"chosen", "shape"}, {"y"});
    expect_shape_or_error(fixed, count, count == 6 ? std::optional(Shape{2, 3}) : std::nullopt,
                          kText);
    TestModel divided = chosen_rows({6});
    divided.constant("shape", ints({3, -1})).node("Reshape", {"chosen", "shape"}, {"y"});
    expect_shape_or_error(divided, count,
                          count == 4 ? std::nullopt : std::optional(Shape{3, count / 3}), kText);
    // Places of elements [n, 1] are as many as there are rows.
    TestModel computed = chosen_rows({6});
    computed.node("Shape", {"places"}, {"shape"}).node("Reshape", {"chosen", "shape"}, {"y"});
    expect_shape_or_error(computed, count, Shape{count, 1}, "");
    EXPECT_FALSE(has_loop(computed.graph())) << "a shape that surely fits is not checked";
  }
}

TEST(varying_places, a_squeeze_of_another_number_than_one_is_an_error) {
  for (const int64_t count : {0, 1}) {
    TestModel m = chosen_rows({6});
    m.constant("one", ints({1})).constant("none", ints({0})).constant("first", ints({0}));
    m.node("Slice", {"chosen", "none", "one"}, {"some"});
    m.node("Squeeze", {"some", "first"}, {"y"});
    expect_shape_or_error(m, count, count == 1 ? std::optional(Shape{}) : std::nullopt,
                          "a dimension that it removes has no element");
  }
}

}  // namespace
}  // namespace hone::graph
