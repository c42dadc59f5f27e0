// assign_layouts and assign_storage: what they promise beyond equal results.
#include <gtest/gtest.h>

#include <algorithm>

#include "hone/graph/passes/pass.h"
#include "hone/graph/reference_testing.h"
#include "hone/graph/tasks.h"
#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

Graph optimized(const TestModel& model) {
  Graph graph = model.graph();
  const Status status = optimize(graph);
  EXPECT_TRUE(status.ok()) << status.message();
  return graph;
}

int copies(const Graph& graph) {
  return static_cast<int>(std::count_if(graph.nodes.begin(), graph.nodes.end(),
                                        [](const Node& n) { return n.type == "hone.Copy"; }));
}

const Value& named(const Graph& graph, const std::string& name) {
  for (const Value& value : graph.values) {
    if (value.name == name) return value;
  }
  ADD_FAILURE() << "no value " << name;
  return graph.values[0];
}

TestModel two_convolutions(Rng& rng) {
  TestModel model;
  model.input("x", {1, 3, 6, 6}).constant("w1", random_tensor({4, 3, 3, 3}, rng));
  model.constant("w2", random_tensor({5, 4, 5, 5}, rng))
      .constant("w3", random_tensor({5, 4, 3, 3}, rng));
  model.node("Conv", {"x", "w1"}, {"a"}, {{"pads", Shape{1, 1, 1, 1}}}).node("Relu", {"a"}, {"r"});
  model.node("Conv", {"r", "w2"}, {"b"}, {{"pads", Shape{2, 2, 2, 2}}});
  model.node("Conv", {"r", "w3"}, {"c"}, {{"pads", Shape{1, 1, 1, 1}}});
  model.node("Add", {"b", "c"}, {"y"}).output("y");
  return model;
}

TEST(layout, activations_are_channels_last_and_copied_only_at_the_ends) {
  Rng rng(71);
  const Graph graph = optimized(two_convolutions(rng));
  EXPECT_EQ(copies(graph), 2);
  EXPECT_EQ(named(graph, "r").order, (std::vector<int>{0, 2, 3, 1}));
}

TEST(layout, a_border_is_the_largest_padding_of_the_readers) {
  Rng rng(72);
  const Graph graph = optimized(two_convolutions(rng));
  const Storage& storage = named(graph, "r").storage;
  EXPECT_EQ(storage.border_low, (Shape{0, 0, 2, 2}));
  EXPECT_EQ(storage.border_high, (Shape{0, 0, 2, 2}));
  EXPECT_EQ(storage.extent, (Shape{1, 10, 10, 4}));
  EXPECT_EQ(storage.offset, (Shape{0, 2, 2, 0}));
}

TEST(layout, padded_reads_need_no_guard) {
  Rng rng(73);
  TestModel model = two_convolutions(rng);
  model.node("Relu", {"y"}, {"s"})
      .node("MaxPool", {"s"}, {"m"}, {{"kernel_shape", Shape{3, 3}}, {"pads", Shape{1, 1, 1, 1}}});
  model.output("m");
  const auto tasks = extract_tasks(optimized(model));
  ASSERT_TRUE(tasks.ok());
  for (const TaskCall& call : tasks->calls) {
    for (const compute::Stage& stage : call.dag.stages) {
      for (const compute::Output& output : stage.outputs) {
        ir::visit(output.value,
                  [&](const ir::Expr& e) { EXPECT_NE(e->op, ir::Op::kSelect) << call.name; });
      }
    }
  }
}

TEST(layout, max_pooling_of_signed_values_is_guarded) {
  Rng rng(74);
  TestModel model;
  model.input("x", {1, 2, 5, 5})
      .constant("w", random_tensor({3, 2, 1, 1}, rng))
      .node("Conv", {"x", "w"}, {"c"});
  model.node("MaxPool", {"c"}, {"y"}, {{"kernel_shape", Shape{3, 3}}, {"pads", Shape{1, 1, 1, 1}}})
      .output("y");
  const Graph graph = optimized(model);
  EXPECT_EQ(named(graph, "c").storage.border_low, (Shape{0, 0, 0, 0}));
  // All values negative: a zero border would win.
  const Tensor x = random_tensor({1, 2, 5, 5}, rng, -2, -1);
  EXPECT_LT(
      relative_error(run_optimized(model.graph(), {x})[0], run_plainly(model.graph(), {x})[0]),
      1e-6);
}

TEST(layout, a_value_of_one_pixel_is_not_copied) {
  Rng rng(75);
  TestModel model;
  model.input("x", {2, 3, 4, 4})
      .constant("w", random_tensor({5, 3, 1, 1}, rng))
      .node("Conv", {"x", "w"}, {"c"});
  model.node("GlobalAveragePool", {"c"}, {"p"})
      .node("Flatten", {"p"}, {"f"})
      .constant("g", random_tensor({5, 2}, rng));
  model.node("Gemm", {"f", "g"}, {"y"}).output("y");
  EXPECT_EQ(copies(optimized(model)), 1);
  TestModel pooled;
  pooled.input("x", {1, 3, 4, 4})
      .constant("w", random_tensor({5, 3, 1, 1}, rng))
      .node("Conv", {"x", "w"}, {"c"});
  pooled.node("GlobalAveragePool", {"c"}, {"p"}).node("Flatten", {"p"}, {"y"}).output("y");
  const Graph graph = optimized(pooled);
  EXPECT_EQ(copies(graph), 1);  // the pooling writes the output itself
  EXPECT_EQ(graph.buffers[static_cast<size_t>(named(graph, "p").storage.buffer)].kind,
            Buffer::Kind::kOutput);
}

TestModel fire(Rng& rng) {
  TestModel model;
  model.input("x", {1, 4, 5, 5})
      .constant("w1", random_tensor({3, 4, 1, 1}, rng))
      .constant("w3", random_tensor({2, 4, 3, 3}, rng));
  model.constant("w", random_tensor({2, 5, 3, 3}, rng))
      .node("Conv", {"x", "w1"}, {"a"})
      .node("Relu", {"a"}, {"ra"});
  model.node("Conv", {"x", "w3"}, {"b"}, {{"pads", Shape{1, 1, 1, 1}}}).node("Relu", {"b"}, {"rb"});
  model.node("Concat", {"ra", "rb"}, {"c"}, {{"axis", int64_t{1}}});
  model.node("Conv", {"c", "w"}, {"y"}, {{"pads", Shape{1, 1, 1, 1}}}).output("y");
  return model;
}

TEST(concat, is_written_in_place_by_its_producers) {
  Rng rng(76);
  const TestModel model = fire(rng);
  const Graph graph = optimized(model);
  EXPECT_EQ(copies(graph), 2);  // x and y
  EXPECT_EQ(named(graph, "ra").storage.buffer, named(graph, "rb").storage.buffer);
  EXPECT_EQ(named(graph, "rb").storage.offset, (Shape{0, 1, 1, 3}));
  EXPECT_EQ(named(graph, "rb").storage.extent, (Shape{1, 7, 7, 5}));
  const Tensor x = random_tensor({1, 4, 5, 5}, rng);
  EXPECT_LT(
      relative_error(run_optimized(model.graph(), {x})[0], run_plainly(model.graph(), {x})[0]),
      1e-5);
}

TEST(concat, a_window_may_be_read_by_others_too) {
  Rng rng(77);
  TestModel model = fire(rng);
  model.constant("v", random_tensor({2, 2, 3, 3}, rng))
      .node("Conv", {"rb", "v"}, {"z"}, {{"pads", Shape{1, 1, 1, 1}}});
  model.node("Concat", {"z", "c"}, {"again"}, {{"axis", int64_t{1}}})
      .node("GlobalAveragePool", {"again"}, {"q"})
      .output("q");
  const Graph graph = optimized(model);
  EXPECT_EQ(named(graph, "ra").storage.buffer,
            named(graph, "again").storage.buffer);  // nested windows
  EXPECT_EQ(named(graph, "ra").storage.offset, (Shape{0, 1, 1, 2}));
  const Tensor x = random_tensor({1, 4, 5, 5}, rng);
  const auto expected = run_plainly(model.graph(), {x}), actual = run_optimized(model.graph(), {x});
  for (size_t i = 0; i < 2; ++i) EXPECT_LT(relative_error(actual[i], expected[i]), 1e-5);
}

TEST(concat, along_a_spatial_dimension_does_not_take_the_neighbour_for_a_border) {
  Rng rng(78);
  TestModel model;
  model.input("x", {1, 2, 4, 4})
      .constant("w", random_tensor({2, 2, 1, 1}, rng))
      .constant("v", random_tensor({3, 2, 3, 3}, rng));
  model.node("Conv", {"x", "w"}, {"a"})
      .node("Conv", {"a", "w"}, {"b"})
      .node("Concat", {"a", "b"}, {"c"}, {{"axis", int64_t{2}}});
  model.node("Conv", {"b", "v"}, {"z"}, {{"pads", Shape{1, 1, 1, 1}}}).output("z");
  model.node("Conv", {"c", "v"}, {"whole"}, {{"pads", Shape{1, 1, 1, 1}}}).output("whole");
  const Tensor x = random_tensor({1, 2, 4, 4}, rng);
  const auto expected = run_plainly(model.graph(), {x}), actual = run_optimized(model.graph(), {x});
  for (size_t i = 0; i < 2; ++i) EXPECT_LT(relative_error(actual[i], expected[i]), 1e-5);
}

TEST(storage, outputs_may_be_inputs_constants_or_one_value_twice) {
  TestModel model;
  model.input("x", {2})
      .constant("c", floats({2}, {7, 8}))
      .node("Relu", {"x"}, {"r"})
      .node("Identity", {"r"}, {"s"});
  model.constant("shape", ints({2, 1})).node("Reshape", {"r", "shape"}, {"t"});
  model.output("x").output("c").output("r").output("s").output("t");
  const auto outputs = run_optimized(model.graph(), {floats({2}, {-1, 2})});
  ASSERT_EQ(outputs.size(), 5u);
  EXPECT_EQ(relative_error(outputs[0], floats({2}, {-1, 2})), 0);
  EXPECT_EQ(relative_error(outputs[1], floats({2}, {7, 8})), 0);
  for (size_t i : {2, 3}) EXPECT_EQ(relative_error(outputs[i], floats({2}, {0, 2})), 0);
  EXPECT_EQ(relative_error(outputs[4], floats({2, 1}, {0, 2})), 0);
}

TEST(layout, pools_take_any_order_if_the_device_does) {
  Rng rng(80);
  TestModel model;
  model.input("x", {2, 3, 8, 6});
  model.node("MaxPool", {"x"}, {"m"}, {{"kernel_shape", Shape{3, 3}}, {"strides", Shape{2, 2}}});
  model.node("GlobalAveragePool", {"m"}, {"y"}).output("m").output("y");
  Graph graph = model.graph();
  ASSERT_TRUE(optimize(graph, {.any_order = true}).ok());
  EXPECT_EQ(copies(graph), 0);
  EXPECT_EQ(copies(optimized(model)), 2);
  const Tensor x = random_tensor({2, 3, 8, 6}, rng);
  const auto expected = run_plainly(model.graph(), {x});
  const Result<TaskList> tasks = extract_tasks(graph);
  ASSERT_TRUE(tasks.ok()) << tasks.status().message();
  const auto found = run_reference(*tasks, plan_memory(*tasks), {x});
  ASSERT_TRUE(found.ok()) << found.status().message();
  for (size_t i = 0; i < 2; ++i) EXPECT_LT(relative_error((*found)[i], expected[i]), 1e-6);
}

TEST(layout, transposes_are_free_until_a_reshape) {
  Rng rng(79);
  TestModel model;
  model.input("x", {1, 3, 2, 4})
      .constant("w", random_tensor({6, 3, 1, 1}, rng))
      .node("Conv", {"x", "w"}, {"c"});
  model.node("Transpose", {"c"}, {"t"}, {{"perm", Shape{0, 2, 3, 1}}})
      .constant("s", ints({1, -1, 3}));
  model.node("Reshape", {"t", "s"}, {"y"}).output("y");  // as detectors end
  EXPECT_EQ(copies(optimized(model)), 1);
  const Tensor x = random_tensor({1, 3, 2, 4}, rng);
  EXPECT_LT(
      relative_error(run_optimized(model.graph(), {x})[0], run_plainly(model.graph(), {x})[0]),
      1e-5);
}

}  // namespace
}  // namespace hone::graph
