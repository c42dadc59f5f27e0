#include "hone/graph/tasks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "hone/graph/memory_plan.h"
#include "hone/graph/passes/pass.h"
#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

// Three equal convolutions, of which the last has the weights of the first.
TestModel repeated(const std::string& prefix, Rng& rng) {
  TestModel model;
  model.input(prefix + "x", {1, 4, 6, 6});
  const Tensor w1 = random_tensor({4, 4, 3, 3}, rng), w2 = random_tensor({4, 4, 3, 3}, rng);
  model.constant(prefix + "w1", w1).constant(prefix + "w2", w2).constant(prefix + "w3", w1.clone());
  std::string last = prefix + "x";
  for (const char* name : {"1", "2", "3"}) {
    model.node("Conv", {last, prefix + "w" + name}, {prefix + "c" + name},
               {{"pads", Shape{1, 1, 1, 1}}});
    model.node("Relu", {prefix + "c" + name}, {prefix + "r" + name});
    last = prefix + "r" + name;
  }
  model
      .node("MaxPool", {last}, {prefix + "y"},
            {{"kernel_shape", Shape{3, 3}}, {"pads", Shape{1, 1, 1, 1}}})
      .output(prefix + "y");
  return model;
}

TaskList tasks_of(const TestModel& model) {
  Graph graph = model.graph();
  EXPECT_TRUE(optimize(graph).ok());
  auto tasks = extract_tasks(graph);
  EXPECT_TRUE(tasks.ok()) << tasks.status().message();
  return std::move(tasks).value();
}

TEST(tasks, equal_ones_are_grouped_and_equal_constants_stored_once) {
  Rng rng(91);
  const TaskList tasks = tasks_of(repeated("", rng));
  ASSERT_EQ(tasks.calls.size(), 6u);  // copy, 3 convolutions, pooling, copy
  EXPECT_EQ(tasks.groups.size(), 4u);
  EXPECT_EQ(tasks.groups[1].calls, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(tasks.constants.size(), 2u);
  EXPECT_EQ(constants_hash(tasks, tasks.calls[1]), constants_hash(tasks, tasks.calls[3]));
  EXPECT_NE(constants_hash(tasks, tasks.calls[1]), constants_hash(tasks, tasks.calls[2]));
}

TEST(tasks, keys_do_not_depend_on_names) {
  Rng rng1(92), rng2(92);
  const TaskList a = tasks_of(repeated("", rng1)), b = tasks_of(repeated("other/", rng2));
  for (size_t i = 0; i < a.calls.size(); ++i) {
    EXPECT_EQ(a.calls[i].key, b.calls[i].key);
    for (const ir::Param& param : b.calls[i].dag.params) {
      EXPECT_EQ(param.buffer->name.find("other/"), std::string::npos) << param.buffer->name;
    }
  }
}

TEST(tasks, arguments_say_where_operands_lie) {
  Rng rng(93);
  const TaskList tasks = tasks_of(repeated("", rng));
  const auto kinds = [&](size_t call) {
    std::vector<Argument::Kind> list;
    for (const Argument& argument : tasks.calls[call].arguments) list.push_back(argument.kind);
    return list;
  };
  using K = Argument::Kind;
  EXPECT_EQ(kinds(0), (std::vector{K::kInput, K::kArena}));
  EXPECT_EQ(kinds(1), (std::vector{K::kArena, K::kConstant, K::kArena}));
  EXPECT_EQ(kinds(5), (std::vector{K::kArena, K::kOutput}));
  for (const TaskCall& call : tasks.calls) {
    ASSERT_EQ(call.arguments.size(), call.dag.params.size());
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      const bool constant = call.arguments[i].kind == K::kConstant;
      EXPECT_EQ(constant, call.dag.params[i].role == ir::Role::kConstant);
      if (constant) {
        EXPECT_EQ(tasks.constants[static_cast<size_t>(call.arguments[i].index)].shape(),
                  call.dag.params[i].buffer->shape);
      }
    }
  }
}

// Around the first convolution lies what the copy before it left there: zeros, as around the
// others.
TEST(tasks, borders_are_known_to_be_zero_beside_finite_weights) {
  Rng rng(95);
  const Shape border = {0, 1, 1, 0, 0, 1, 1, 0};
  const TaskList tasks = tasks_of(repeated("", rng));
  for (const int i : {1, 2, 3}) {
    EXPECT_EQ(tasks.calls[static_cast<size_t>(i)].dag.params[0].zeros, border) << i;
    EXPECT_TRUE(tasks.calls[static_cast<size_t>(i)].dag.params[1].zeros.empty()) << "weights";
  }
  EXPECT_TRUE(tasks.calls[0].dag.params[0].zeros.empty()) << "the model's input";
  // Calls with one key run the same code: one that has infinite weights counts for all.
  TestModel model;
  model.input("x", {1, 4, 6, 6});
  Tensor w = random_tensor({4, 4, 3, 3}, rng), infinite = w.clone();
  infinite.set(7, std::numeric_limits<double>::infinity());
  model.constant("w1", w).constant("w2", infinite);
  model.node("Conv", {"x", "w1"}, {"a"}, {{"pads", Shape{1, 1, 1, 1}}})
      .node("Relu", {"a"}, {"b"})
      .node("Conv", {"b", "w2"}, {"c"}, {{"pads", Shape{1, 1, 1, 1}}})
      .node("Relu", {"c"}, {"d"})
      .node("MaxPool", {"d"}, {"y"}, {{"kernel_shape", Shape{3, 3}}, {"pads", Shape{1, 1, 1, 1}}})
      .output("y");
  const TaskList infinitely = tasks_of(model);
  ASSERT_EQ(infinitely.calls[1].group, infinitely.calls[2].group);
  for (const int i : {1, 2})
    EXPECT_TRUE(infinitely.calls[static_cast<size_t>(i)].dag.params[0].zeros.empty()) << i;
}

TEST(tasks, the_listing_shows_class_shapes_flops_and_multiplicity) {
  Rng rng(94);
  const TaskList tasks = tasks_of(repeated("", rng));
  const std::string text = describe(tasks);
  EXPECT_NE(text.find("6 tasks, 4 distinct"), std::string::npos) << text;
  EXPECT_NE(text.find("  3x"), std::string::npos) << text;
  EXPECT_NE(text.find("conv2d+relu data[1,8,8,4] weight[4,4,3,3] -> out[1,8,8,4]"),
            std::string::npos)
      << text;
  EXPECT_GE(compute::flops(tasks.calls[1].dag), 2.0 * 36 * 4 * 4 * 9);
}

}  // namespace
}  // namespace hone::graph
