#include <gtest/gtest.h>

#include "hone/graph/tasks.h"
#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

Tensor counting(const Shape& shape) {
  Tensor tensor(DType::kF32, shape);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, static_cast<double>(i));
  return tensor;
}

// Once on run-time data and once folded: y = node(x, operands...).
void expect_result(const TestModel& at_run_time, const TestModel& folded, const Tensor& x,
                   const Tensor& expected) {
  EXPECT_EQ(relative_error(run_optimized(at_run_time.graph(), {x})[0], expected), 0);
  EXPECT_EQ(relative_error(run_optimized(folded.graph(), {})[0], expected), 0);
}

template <typename Build>
void check(const Tensor& x, const Tensor& expected, int opset, const Build& build) {
  TestModel at_run_time(opset), folded(opset);
  build(at_run_time.input("x", x.shape()));
  build(folded.constant("x", x));
  expect_result(at_run_time.output("y"), folded.output("y"), x, expected);
}

TEST(movement, transpose) {
  check(counting({2, 3}), floats({3, 2}, {0, 3, 1, 4, 2, 5}), 17,
        [](TestModel& m) { m.node("Transpose", {"x"}, {"y"}); });
  check(counting({1, 2, 3}), floats({3, 1, 2}, {0, 3, 1, 4, 2, 5}), 17, [](TestModel& m) {
    m.node("Transpose", {"x"}, {"y"}, {{"perm", Shape{2, 0, 1}}});
  });
}

TEST(movement, views_keep_the_order) {
  const Tensor x = counting({2, 1, 3});
  check(x, x.reshaped({2, 3}), 17, [](TestModel& m) { m.node("Flatten", {"x"}, {"y"}); });
  check(x, x.reshaped({1, 6}), 17, [](TestModel& m) {
    m.node("Flatten", {"x"}, {"y"}, {{"axis", int64_t{0}}});
  });
  check(x, x.reshaped({3, 2}), 17, [](TestModel& m) {
    m.constant("s", ints({-1, 2})).node("Reshape", {"x", "s"}, {"y"});
  });
  check(x, x.reshaped({2, 3, 1}), 17, [](TestModel& m) {
    m.constant("s", ints({0, 3, -1})).node("Reshape", {"x", "s"}, {"y"});
  });
  check(x, x.reshaped({2, 3}), 12, [](TestModel& m) {
    m.node("Squeeze", {"x"}, {"y"}, {{"axes", Shape{-2}}});
  });
  check(x, x.reshaped({2, 3}), 13, [](TestModel& m) {
    m.constant("a", ints({1})).node("Squeeze", {"x", "a"}, {"y"});
  });
  check(x, x.reshaped({2, 3}), 13, [](TestModel& m) { m.node("Squeeze", {"x"}, {"y"}); });
  check(x, x.reshaped({1, 2, 1, 3, 1}), 12, [](TestModel& m) {
    m.node("Unsqueeze", {"x"}, {"y"}, {{"axes", Shape{0, -1}}});
  });
  check(x, x.reshaped({2, 1, 1, 3}), 13, [](TestModel& m) {
    m.constant("a", ints({1})).node("Unsqueeze", {"x", "a"}, {"y"});
  });
  check(x, x, 17,
        [](TestModel& m) { m.node("Identity", {"x"}, {"i"}).node("Dropout", {"i"}, {"y"}); });
}

TEST(movement, reshape_errors_name_the_shapes) {
  TestModel model;
  model.input("x", {2, 3})
      .constant("s", ints({4, -1}))
      .node("Reshape", {"x", "s"}, {"y"})
      .output("y");
  const Status status = model.import().status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("cannot reshape [2, 3] to [4, "), std::string::npos)
      << status.message();
  TestModel dynamic;
  dynamic.input("x", {2, 3})
      .input("s", {2}, DType::kI64)
      .node("Reshape", {"x", "s"}, {"y"})
      .output("y");
  EXPECT_EQ(dynamic.import().status().code(), Code::kUnsupported);
}

TEST(movement, concat) {
  check(counting({2, 2}), floats({2, 3}, {0, 1, 7, 2, 3, 8}), 17, [](TestModel& m) {
    m.constant("c", floats({2, 1}, {7, 8}))
        .node("Concat", {"x", "c"}, {"y"}, {{"axis", int64_t{-1}}});
  });
  check(counting({1, 2}), floats({3, 2}, {0, 1, 5, 6, 0, 1}), 17, [](TestModel& m) {
    m.constant("c", floats({1, 2}, {5, 6}))
        .node("Concat", {"x", "c", "x"}, {"y"}, {{"axis", int64_t{0}}});
  });
}

TEST(movement, slice) {
  check(counting({3, 4}), floats({2, 2}, {5, 6, 9, 10}), 9, [](TestModel& m) {
    m.node("Slice", {"x"}, {"y"}, {{"starts", Shape{1, 1}}, {"ends", Shape{3, -1}}});
  });
  check(counting({3, 4}), floats({3, 2}, {3, 1, 7, 5, 11, 9}), 13, [](TestModel& m) {
    m.constant("s", ints({-1}))
        .constant("e", ints({INT64_MIN}))
        .constant("a", ints({1}))
        .constant("t", ints({-2}));
    m.node("Slice", {"x", "s", "e", "a", "t"}, {"y"});
  });
  check(counting({5}), floats({3}, {0, 2, 4}), 13, [](TestModel& m) {
    m.constant("s", ints({0}))
        .constant("e", ints({INT64_MAX}))
        .constant("a", ints({0}))
        .constant("t", ints({2}));
    m.node("Slice", {"x", "s", "e", "a", "t"}, {"y"});
  });
}

TEST(movement, pad) {
  const Tensor expected = floats({3, 4}, {9, 9, 9, 9, 9, 0, 1, 9, 9, 2, 3, 9});
  check(counting({2, 2}), expected, 10, [](TestModel& m) {
    m.node("Pad", {"x"}, {"y"}, {{"pads", Shape{1, 1, 0, 1}}, {"value", 9.0f}});
  });
  check(counting({2, 2}), expected, 18, [](TestModel& m) {
    m.constant("p", ints({1, 1, 0, 1}))
        .constant("v", floats({}, {9}))
        .node("Pad", {"x", "p", "v"}, {"y"});
  });
  check(counting({2, 3}), floats({2, 2}, {1, 2, 4, 5}), 18, [](TestModel& m) {
    m.constant("p", ints({-1, 0}))
        .constant("a", ints({-1}))
        .node("Pad", {"x", "p", "", "a"}, {"y"});
  });
}

TEST(movement, shapes_are_computed_at_compile_time) {
  // reshape(x, [shape(x)[0], size(x) / shape(x)[0]]), as exporters write a flatten.
  TestModel model;
  model.input("x", {2, 3, 4}).node("Shape", {"x"}, {"s"}).node("Size", {"x"}, {"n"});
  model.constant("zero", ints({0}))
      .node("Gather", {"s", "zero"}, {"first"})
      .node("Div", {"n", "first"}, {"rest"});
  model.node("Concat", {"first", "rest"}, {"t"}, {{"axis", int64_t{0}}})
      .node("Reshape", {"x", "t"}, {"y"})
      .output("y");
  const Graph graph = model.graph();
  EXPECT_EQ(graph.value(graph.outputs[0]).shape, (Shape{2, 12}));
  EXPECT_EQ(graph.nodes.size(), 1u);
}

TEST(movement, gather_by_indices_of_the_run) {
  TestModel model;
  model.input("x", {2, 3, 2}).input("i", {2, 2}, DType::kI64);
  model.node("Gather", {"x", "i"}, {"y"}, {{"axis", int64_t{1}}}).output("y");
  Tensor indices(DType::kI64, {2, 2});
  for (int64_t k = 0; k < 4; ++k)
    indices.set(k, std::vector<double>{2, 0, -1, -3}[static_cast<size_t>(k)]);
  const Tensor expected =
      floats({2, 2, 2, 2}, {4, 5, 0, 1, 4, 5, 0, 1, 10, 11, 6, 7, 10, 11, 6, 7});
  const auto y = run_optimized(model.graph(), {counting({2, 3, 2}), indices});
  EXPECT_EQ(relative_error(y[0], expected), 0);
}

TEST(movement, constants_of_all_forms) {
  TestModel model;
  model.node("Constant", {}, {"a"}, {{"value", floats({2}, {1, 2})}});
  model.node("Constant", {}, {"b"}, {{"value_float", 3.0f}});
  model.node("Constant", {}, {"s"}, {{"value_ints", Shape{2}}});
  model.node("ConstantOfShape", {"s"}, {"c"}, {{"value", floats({1}, {10})}});
  model.node("Add", {"a", "b"}, {"ab"}).node("Add", {"ab", "c"}, {"y"}).output("y");
  EXPECT_EQ(relative_error(run_optimized(model.graph(), {})[0], floats({2}, {14, 15})), 0);
}

// A double does not have all integers of 64 bits.
TEST(movement, constants_of_a_shape_have_all_bits) {
  constexpr int64_t kMany = (int64_t{1} << 62) + 1;
  TestModel model;
  model.constant("s", ints({3}));
  model.node("ConstantOfShape", {"s"}, {"y"}, {{"value", ints({kMany})}}).output("y");
  const Tensor y = run_optimized(model.graph(), {})[0];
  for (const int64_t found : y.as<int64_t>()) EXPECT_EQ(found, kMany);
}

}  // namespace
}  // namespace hone::graph
