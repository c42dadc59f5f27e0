#include "hone/session/check_arguments.h"

#include <gtest/gtest.h>

#include "hone/graph/passes/pass.h"
#include "hone/graph/test_model.h"
#include "hone/target/target.h"

namespace hone {
namespace {

// Two products of one key, with weights of their own.
struct Model {
  graph::TaskList tasks;
  std::vector<KernelPtr> kernels;
  Model() {
    Rng rng(3);
    graph::TestModel model;
    model.input("x", {4, 6}).input("z", {4, 6});
    model.constant("v", graph::random_tensor({6, 5}, rng));
    model.constant("w", graph::random_tensor({6, 5}, rng));
    model.node("MatMul", {"x", "v"}, {"a"}).node("MatMul", {"z", "w"}, {"b"});
    graph::Graph graph = model.output("a").output("b").graph();
    EXPECT_TRUE(graph::optimize(graph, {.skip = {"merge_parallel_products"}}).ok());
    tasks = *graph::extract_tasks(graph);
    for (const graph::TaskGroup& group : tasks.groups) {
      const graph::TaskCall& first = tasks.calls[static_cast<size_t>(group.calls[0])];
      kernels.push_back(
          std::make_shared<const Kernel>(*build_kernel(first.dag, {}, target::host())));
    }
  }
  graph::TaskCall& last() { return tasks.calls.back(); }
  Status check() { return check_arguments(tasks, kernels); }
};

// The message names the call and holds the text.
void expect_bug(const Status& status, const graph::TaskCall& call, const std::string& text) {
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_TRUE(status.message().starts_with(call.name)) << status.message();
  EXPECT_NE(status.message().find(text), std::string::npos) << status.message();
}

TEST(check_arguments, what_a_kernel_takes_is_what_its_calls_give) {
  Model model;
  ASSERT_EQ(model.tasks.calls.size(), 2u);
  ASSERT_EQ(model.tasks.groups.size(), 1u);
  EXPECT_TRUE(model.check().ok()) << model.check().message();
}

TEST(check_arguments, another_list_of_arguments_is_a_bug) {
  Model more;
  more.last().dag.params.push_back(more.last().dag.params[0]);
  more.last().arguments.push_back(more.last().arguments[0]);
  expect_bug(more.check(), more.last(), "takes 3 arguments, but the call gives 4");

  Model fewer;
  fewer.last().arguments.pop_back();
  expect_bug(fewer.check(), fewer.last(), "takes 3 arguments, but the call gives 2");

  Model swapped;
  std::swap(swapped.last().dag.params[0], swapped.last().dag.params[1]);
  std::swap(swapped.last().arguments[0], swapped.last().arguments[1]);
  expect_bug(swapped.check(), swapped.last(), "argument 0 of its kernel is input");
}

TEST(check_arguments, an_argument_of_another_kind_or_size_is_a_bug) {
  Model constant;  // where the kernel takes an input
  constant.last().arguments[0] = constant.last().arguments[1];
  expect_bug(constant.check(), constant.last(), "argument 0 of its kernel is input of 96 bytes");

  Model small;
  small.tasks.inputs[1].shape = {4, 5};
  expect_bug(small.check(), small.last(), "but the call gives 80 bytes");

  Model zeros;
  zeros.last().dag.params[0].zeros = {1, 1, 0, 0};
  expect_bug(zeros.check(), zeros.last(), "with zeros [1,1,0,0]");
}

TEST(check_arguments, a_result_behind_the_end_of_its_buffer_is_a_bug) {
  Model model;
  graph::TaskCall& last = model.last();
  const int64_t bytes = last.dag.params[0].buffer->bytes();
  const auto check = [&](int64_t offset) {
    std::vector<int64_t> offsets(last.dag.params.size(), 0);
    offsets[0] = offset;
    return check_arguments(model.tasks, model.kernels,
                           std::vector<std::vector<int64_t>>(model.tasks.groups.size(), offsets));
  };
  EXPECT_TRUE(check(0).ok()) << check(0).message();
  EXPECT_EQ(check(bytes).code(), Code::kInternal);
}

}  // namespace
}  // namespace hone
