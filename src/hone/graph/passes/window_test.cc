// Slices that are read where their operand lies.
#include <gtest/gtest.h>

#include "hone/graph/passes/pass_testing.h"

namespace hone::graph {
namespace {

// Names the constants of a Slice after its result.
TestModel& slice(TestModel& model, const std::string& from, const std::string& to, int64_t axis,
                 int64_t start, int64_t end, int64_t step = 1) {
  const auto name = [&](const char* what) { return to + what; };
  model.constant(name(".s"), ints({start})).constant(name(".e"), ints({end}));
  model.constant(name(".a"), ints({axis})).constant(name(".t"), ints({step}));
  return model.node("Slice", {from, name(".s"), name(".e"), name(".a"), name(".t")}, {to});
}

// The graph after all passes, once its results are known to be right.
Graph optimized(const TestModel& model, const std::vector<Tensor>& inputs) {
  Graph graph = model.graph();
  const auto expected = run_plainly(graph, inputs), actual = run_optimized(graph, inputs);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_LT(relative_error(actual[i], expected[i]), 1e-5);
  EXPECT_TRUE(optimize(graph).ok());
  return graph;
}

TEST(windows, slices_along_any_dimension_move_nothing) {
  Rng rng(91);
  for (const int64_t axis : {0, 1, 2}) {
    TestModel model;
    model.input("x", {4, 4, 4}).node("Exp", {"x"}, {"e"});
    slice(model, "e", "a", axis, 0, 1);
    slice(model, "e", "b", axis, 1, 4);
    slice(model, "b", "c", axis, 1, 2);
    model.node("Transpose", {"c"}, {"t"}, {{"perm", Shape{2, 1, 0}}});
    model.node("Transpose", {"a"}, {"u"}, {{"perm", Shape{2, 1, 0}}});
    model.node("Mul", {"u", "t"}, {"p"}).node("Softmax", {"b"}, {"q"});
    const Graph graph = optimized(model.output("p").output("q"), {random_tensor({4, 4, 4}, rng)});
    EXPECT_EQ(count(graph, "hone.Window"), 3);
    EXPECT_EQ(count(graph, "Slice"), 0);
  }
}

TEST(windows, a_part_of_an_input_is_read_in_place) {
  Rng rng(92);
  TestModel model;
  model.input("x", {3, 8});
  slice(model, "x", "a", 1, 4, 8).node("Tanh", {"a"}, {"y"});
  const Graph graph = optimized(model.output("y"), {random_tensor({3, 8}, rng)});
  EXPECT_EQ(types(graph), (std::vector<std::string>{"hone.Window", "Tanh"}));
}

TEST(windows, share_the_border_of_the_whole) {
  Rng rng(93);
  TestModel model;
  model.input("x", {1, 3, 6, 6}).constant("w", random_tensor({8, 3, 1, 1}, rng));
  model.node("Conv", {"x", "w"}, {"c"}).node("Relu", {"c"}, {"r"});
  slice(model, "r", "a", 1, 0, 5);
  slice(model, "r", "b", 1, 5, 8);
  model.constant("v", random_tensor({2, 5, 3, 3}, rng));
  model.node("Conv", {"a", "v"}, {"p"}, {{"pads", Shape{1, 1, 1, 1}}});
  model.node("MaxPool", {"b"}, {"q"}, {{"kernel_shape", Shape{5, 5}}, {"pads", Shape{2, 2, 2, 2}}});
  const Graph graph = optimized(model.output("p").output("q"), {random_tensor({1, 3, 6, 6}, rng)});
  ASSERT_EQ(count(graph, "hone.Window"), 2);
  for (const Node& node : graph.nodes) {
    if (node.type != "hone.Window") continue;
    const Storage& part = graph.value(node.outputs[0]).storage;
    EXPECT_EQ(part.buffer, graph.value(node.inputs[0]).storage.buffer);
    EXPECT_EQ(part.border_low, (Shape{0, 0, 2, 2}));
  }
}

TEST(windows, rows_of_a_bordered_whole_have_no_border_of_their_own) {
  Rng rng(94);
  TestModel model;
  model.input("x", {1, 3, 6, 6}).constant("w", random_tensor({4, 3, 1, 1}, rng));
  model.node("Conv", {"x", "w"}, {"c"});
  slice(model, "c", "a", 2, 1, 5);
  model.constant("v", random_tensor({2, 4, 3, 3}, rng));
  model.node("Conv", {"a", "v"}, {"y"}, {{"pads", Shape{1, 1, 1, 1}}});
  const Graph graph = optimized(model.output("y"), {random_tensor({1, 3, 6, 6}, rng)});
  EXPECT_EQ(count(graph, "hone.Window"), 1);
}

TEST(windows, what_needs_its_own_place_is_copied) {
  Rng rng(95);
  TestModel model;
  model.input("x", {2, 8}).node("Exp", {"x"}, {"e"});
  slice(model, "e", "a", 1, 0, 4);     // an output
  slice(model, "e", "b", 1, 2, 6);     // a part of a concatenation
  slice(model, "e", "c", 1, 4, 8);     // in another shape
  slice(model, "e", "d", 1, 0, 8, 2);  // with steps
  model.constant("s", ints({8})).node("Reshape", {"c", "s"}, {"f"}).node("Tanh", {"f"}, {"g"});
  model.node("Concat", {"b", "d"}, {"h"}, {{"axis", int64_t{0}}});
  const Graph graph =
      optimized(model.output("a").output("g").output("h"), {random_tensor({2, 8}, rng)});
  EXPECT_EQ(count(graph, "hone.Window"), 0);
  EXPECT_EQ(count(graph, "Slice"), 4);
}

}  // namespace
}  // namespace hone::graph
