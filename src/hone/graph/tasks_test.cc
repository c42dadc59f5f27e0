#include "hone/graph/tasks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "hone/compute/kernel_params.h"
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

// A constant condition of one element is a literal: the branch that it does not choose is read
// nowhere, whatever it is.
TEST(tasks, what_a_constant_condition_hides_is_no_argument) {
  const auto condition = [](bool value) {
    Tensor tensor(DType::kBool, {1});
    tensor.set(0, value ? 1 : 0);
    return tensor;
  };
  TestModel model;
  model.input("x", {4, 6}).input("y", {4, 6}).input("z", {4, 6});
  model.constant("true", condition(true)).constant("false", condition(false));
  model.node("Where", {"true", "x", "y"}, {"a"}).node("Where", {"true", "z", "z"}, {"b"});
  model.node("Where", {"false", "x", "y"}, {"c"});
  model.output("a").output("b").output("c");
  const TaskList tasks = tasks_of(model);
  ASSERT_EQ(tasks.calls.size(), 3u);
  EXPECT_EQ(tasks.groups.size(), 1u);
  const int read[] = {0, 2, 1};
  for (size_t i = 0; i < 3; ++i) {
    const TaskCall& call = tasks.calls[i];
    ASSERT_EQ(call.arguments.size(), 2u);
    ASSERT_EQ(call.dag.params.size(), 2u);
    EXPECT_EQ(call.dag.params[0].role, ir::Role::kInput);
    EXPECT_EQ(call.arguments[0].kind, Argument::Kind::kInput);
    EXPECT_EQ(call.arguments[0].index, read[i]);
    EXPECT_EQ(call.arguments[1].index, static_cast<int>(i));
  }
}

// y - x and y - x, of which one meets x first, in the branch that is not chosen.
TEST(tasks, arguments_of_equal_tasks_have_one_order) {
  TestModel model;
  model.input("x", {4, 6}).input("y", {4, 6}).input("z", {4, 6});
  Tensor no(DType::kBool, {1});
  no.set(0, 0);
  model.constant("false", no);
  model.node("Where", {"false", "z", "y"}, {"a"}).node("Sub", {"a", "x"}, {"b"});
  model.node("Where", {"false", "x", "y"}, {"c"}).node("Sub", {"c", "x"}, {"d"});
  model.node("Where", {"false", "y", "y"}, {"e"}).node("Sub", {"e", "x"}, {"f"});
  model.output("b").output("d").output("f");
  const TaskList tasks = tasks_of(model);
  ASSERT_EQ(tasks.groups.size(), 1u);
  ASSERT_EQ(tasks.calls.size(), 3u);
  const auto index = [&](size_t call, size_t i) { return tasks.calls[call].arguments[i].index; };
  for (size_t i = 0; i < 3; ++i) {
    const TaskCall& call = tasks.calls[i];
    ASSERT_EQ(call.arguments.size(), 3u);
    EXPECT_TRUE(compute::check_same_params(tasks.calls[0].dag, call.dag).ok());
    EXPECT_EQ(index(i, 0), index(0, 0));
    EXPECT_EQ(index(i, 1), index(0, 1));
    EXPECT_EQ(index(i, 2), static_cast<int>(i));
  }
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
