#include "hone/graph/fuse.h"

#include <gtest/gtest.h>

#include "hone/graph/passes/pass.h"
#include "hone/graph/tasks.h"
#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

// The kernel classes of a model's tasks; its results are compared with the unfused ones.
std::vector<std::string> classes(const TestModel& model, const TaskOptions& options = {}) {
  Graph graph = model.graph();
  std::vector<Tensor> inputs;
  Rng rng(81);
  for (const ValueId id : graph.inputs) inputs.push_back(random_tensor(graph.value(id).shape, rng));
  const auto expected = run_plainly(graph, inputs), actual = run_optimized(graph, inputs);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_LT(relative_error(actual[i], expected[i]), 1e-5);
  EXPECT_TRUE(optimize(graph).ok());
  const auto tasks = extract_tasks(graph, options);
  EXPECT_TRUE(tasks.ok()) << tasks.status().message();
  std::vector<std::string> list;
  for (const TaskCall& call : tasks->calls) list.push_back(compute::kernel_class(call.dag));
  return list;
}

using Classes = std::vector<std::string>;

TestModel conv(Rng& rng) {
  TestModel model;
  model.input("x", {1, 4, 5, 5})
      .constant("w", random_tensor({4, 4, 3, 3}, rng))
      .constant("b", random_tensor({4}, rng));
  model.constant("v", random_tensor({4, 4, 1, 1}, rng));
  model.node("Conv", {"x", "w", "b"}, {"c"}, {{"pads", Shape{1, 1, 1, 1}}});
  return model;
}

TEST(fuse, a_convolution_takes_its_elementwise_followers) {
  Rng rng(82);
  TestModel model = conv(rng);
  model.node("HardSwish", {"c"}, {"h"}).node("Relu", {"h"}, {"y"}).output("y");
  EXPECT_EQ(classes(model), (Classes{"copy", "conv2d+bias+hard_swish+relu", "copy"}));
  EXPECT_EQ(classes(model, {.max_followers = 1}),
            (Classes{"copy", "conv2d+bias+hard_swish", "relu", "copy"}));
  EXPECT_EQ(classes(model, {.max_followers = 0}),
            (Classes{"copy", "conv2d+bias", "hard_swish", "relu", "copy"}));
}

TEST(fuse, a_residual_addition_joins_the_heavier_convolution) {
  Rng rng(83);
  for (const bool swapped : {false, true}) {
    TestModel model = conv(rng);
    model.node("Conv", {"x", "v"}, {"d"})
        .node("Add", {swapped ? "d" : "c", swapped ? "c" : "d"}, {"a"});
    model.node("Relu", {"a"}, {"y"}).output("y");
    EXPECT_EQ(classes(model), (Classes{"copy", "conv2d", "conv2d+bias+add+relu", "copy"}));
  }
}

TEST(fuse, a_branch_that_closes_is_taken_whole) {
  Rng rng(84);
  TestModel model = conv(rng);
  model.node("Tanh", {"c"}, {"s"}).node("Mul", {"c", "s"}, {"y"}).output("y");
  EXPECT_EQ(classes(model), (Classes{"copy", "conv2d+bias+tanh+mul", "copy"}));
}

TEST(fuse, a_value_that_others_read_ends_the_group) {
  Rng rng(85);
  TestModel model = conv(rng);
  model.node("Relu", {"c"}, {"r"}).node("Tanh", {"r"}, {"t"}).node("GlobalMaxPool", {"r"}, {"g"});
  model.node("Add", {"t", "g"}, {"y"}).output("y");
  EXPECT_EQ(classes(model),
            (Classes{"copy", "conv2d+bias+relu", "global_max_pool", "tanh+add", "copy"}));
}

TEST(fuse, an_output_inside_ends_the_group) {
  Rng rng(86);
  TestModel model = conv(rng);
  model.node("GlobalAveragePool", {"c"}, {"p"}).node("Relu", {"p"}, {"y"}).output("y").output("p");
  EXPECT_EQ(classes(model), (Classes{"copy", "conv2d+bias", "global_average_pool", "relu"}));
}

TEST(fuse, a_smaller_value_does_not_take_a_larger_follower) {
  TestModel model;
  model.input("x", {1, 3})
      .input("z", {2, 3})
      .node("Exp", {"x"}, {"e"})
      .node("Add", {"e", "z"}, {"a"})
      .node("Tanh", {"a"}, {"y"})
      .output("y");
  EXPECT_EQ(classes(model), (Classes{"exp", "add+tanh"}));
}

TEST(fuse, grouped_and_depthwise_convolutions_take_followers_too) {
  Rng rng(87);
  TestModel model;
  model.input("x", {1, 4, 5, 5})
      .constant("w", random_tensor({6, 2, 3, 3}, rng))
      .constant("b", random_tensor({6}, rng));
  model.constant("u", random_tensor({6, 1, 3, 3}, rng))
      .constant("k", random_tensor({1, 6, 1, 1}, rng));
  model.node("Conv", {"x", "w", "b"}, {"c"}, {{"group", int64_t{2}}, {"pads", Shape{1, 1, 1, 1}}})
      .node("Relu", {"c"}, {"r"});
  model.node("Conv", {"r", "u"}, {"d"}, {{"group", int64_t{6}}, {"pads", Shape{1, 1, 1, 1}}})
      .node("Mul", {"d", "k"}, {"m"});
  model.node("Add", {"m", "r"}, {"y"}).output("y");
  // The factors of "Mul" went into the weights.
  EXPECT_EQ(classes(model),
            (Classes{"copy", "grouped_conv2d+bias+relu", "depthwise_conv2d+add", "copy"}));
}

TEST(fuse, depthwise_and_pointwise_convolution_become_one_task_where_that_is_chosen) {
  Rng rng(140);
  TestModel model;
  model.input("x", {1, 6, 5, 7}).constant("w", random_tensor({6, 1, 3, 3}, rng));
  model.constant("b", random_tensor({6}, rng)).constant("u", random_tensor({4, 6, 1, 1}, rng));
  model.constant("v", random_tensor({4, 4, 1, 1}, rng));
  model
      .node("Conv", {"x", "w", "b"}, {"c"},
            {{"group", int64_t{6}}, {"pads", Shape{1, 1, 1, 1}}, {"strides", Shape{2, 1}}})
      .node("Relu", {"c"}, {"r"})
      .node("Conv", {"r", "u"}, {"d"});
  model.node("Conv", {"d", "v"}, {"e"}).node("Add", {"e", "d"}, {"y"}).output("y");
  const auto chosen = [](bool joins) {
    return [joins](const compute::Dag&, const compute::Dag& first, const compute::Dag& second) {
      EXPECT_EQ(compute::kernel_class(first), "depthwise_conv2d+bias+relu");
      EXPECT_EQ(compute::kernel_class(second), "conv2d");
      return joins;
    };
  };
  EXPECT_EQ(classes(model, {.join = chosen(true)}),
            (Classes{"copy", "depthwise_conv2d+bias+relu+conv2d", "conv2d+add", "copy"}));
  EXPECT_EQ(classes(model, {.join = chosen(false)}),
            (Classes{"copy", "depthwise_conv2d+bias+relu", "conv2d", "conv2d+add", "copy"}));
}

TEST(fuse, a_matrix_product_takes_bias_and_activation) {
  Rng rng(88);
  TestModel model;
  model.input("x", {1, 4})
      .constant("w", random_tensor({4, 6}, rng))
      .constant("b", random_tensor({6}, rng));
  model.node("MatMul", {"x", "w"}, {"p"})
      .node("Add", {"b", "p"}, {"a"})
      .node("Tanh", {"a"}, {"y"})
      .output("y");
  EXPECT_EQ(classes(model), Classes{"gemm+bias+tanh"});
}

TEST(fuse, stages_are_named_by_role_and_operands_too) {
  Rng rng(89);
  TestModel model = conv(rng);
  model.node("Add", {"c", "x"}, {"a"}).node("Relu", {"a"}, {"y"}).output("y");
  Graph graph = model.graph();
  ASSERT_TRUE(optimize(graph).ok());
  const auto tasks = extract_tasks(graph);
  ASSERT_TRUE(tasks.ok());
  const compute::Dag& dag = tasks->calls[1].dag;
  std::vector<std::string> stages, params;
  for (const auto& stage : dag.stages) stages.push_back(stage.name);
  for (const auto& param : dag.params) params.push_back(param.buffer->name);
  EXPECT_EQ(stages, (Classes{"conv2d", "bias", "add", "relu"}));
  EXPECT_EQ(params, (Classes{"data", "weight", "bias", "out"}));
}

}  // namespace
}  // namespace hone::graph
