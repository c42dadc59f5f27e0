#include "hone/graph/run_order.h"

#include <gtest/gtest.h>

#include "hone/base/rng.h"
#include "hone/graph/memory_plan.h"

namespace hone::graph {
namespace {

constexpr int64_t kRows = 4, kColumns = 64;

// A call that reads columns of a buffer (-1: of none) and writes columns of another.
struct Copy {
  int from, to;
  int64_t first = 0, count = kColumns;            // columns of `to`
  int64_t from_first = 0, from_count = kColumns;  // columns of `from`; the first of them are copied
};

TaskCall call_of(const Copy& copy) {
  compute::DagBuilder b;
  TaskCall call;
  const compute::Axis i = compute::make_axis("i", kRows), k = compute::make_axis("k", copy.count);
  ir::Expr value = ir::constant_float(1);
  if (copy.from >= 0) {
    const auto x = b.input("x", {kRows, kColumns});
    const compute::View view(x, {0, copy.from_first}, {kRows, copy.count});
    value = view.read(compute::variables({i, k}));
    call.arguments.push_back({Argument::Kind::kArena, copy.from});
  }
  const auto y = b.output("y", {kRows, kColumns});
  b.pointwise("copy", {i, k}, compute::View(y, {0, copy.first}, {kRows, copy.count}), value);
  call.arguments.push_back({Argument::Kind::kArena, copy.to});
  Result<compute::Dag> dag = std::move(b).build();
  EXPECT_TRUE(dag.ok()) << dag.status().message();
  call.dag = *std::move(dag);
  return call;
}

TaskList task_list(int num_buffers, const std::vector<Copy>& copies) {
  TaskList tasks;
  for (int i = 0; i < num_buffers; ++i)
    tasks.buffers.push_back({.shape = {kRows, kColumns}, .border = {0, 0, 0, 0}});
  for (const Copy& copy : copies) tasks.calls.push_back(call_of(copy));
  return tasks;
}

using Groups = std::vector<std::vector<int>>;

TEST(run_order, a_call_depends_on_what_it_reads_overwrites_and_writes_again) {
  const TaskList tasks = task_list(4, {{-1, 0}, {0, 1}, {-1, 0}, {1, 2}, {-1, 2}, {-1, 3}});
  EXPECT_EQ(dependences(tasks), (Groups{{}, {0}, {0, 1}, {1}, {3}, {}}));
}

TEST(run_order, parts_of_one_buffer_do_not_depend_on_each_other) {
  // A concatenation of three: two are written side by side, the third meets the second.
  const TaskList tasks = task_list(
      2, {{-1, 0, 0, 16}, {-1, 0, 16, 16}, {-1, 0, 31, 16}, {0, 1, 0, 16, 0}, {0, 1, 16, 16, 16}});
  EXPECT_EQ(dependences(tasks), (Groups{{}, {}, {1}, {0}, {1, 2}}));
}

TEST(run_order, calls_that_nothing_is_known_of_touch_whole_buffers) {
  TaskList tasks = task_list(1, {{-1, 0, 0, 16}, {-1, 0, 16, 16}});
  for (TaskCall& call : tasks.calls) call.dag = {};
  EXPECT_EQ(dependences(tasks), (Groups{{}, {0}}));
}

TEST(run_order, constants_and_inputs_that_are_only_read_order_nothing) {
  TaskList tasks = task_list(3, {{0, 1}, {0, 2}});
  for (TaskCall& call : tasks.calls) call.arguments[0] = {Argument::Kind::kInput, 0};
  EXPECT_EQ(dependences(tasks), (Groups{{}, {}}));
  for (TaskCall& call : tasks.calls) call.arguments[0] = {Argument::Kind::kConstant, 0};
  EXPECT_EQ(dependences(tasks), (Groups{{}, {}}));
}

TEST(run_order, a_call_comes_behind_the_numbers_that_it_reads_and_before_others_there) {
  TaskList tasks = task_list(3, {{-1, 0}, {-1, 1}, {-1, 2}, {-1, 0}});
  tasks.calls[2].sizes = {0};
  EXPECT_EQ(dependences(tasks), (Groups{{}, {}, {0}, {0, 2}}));
}

RunOrderOptions threads(int count) { return {.threads = count, .fork_join_seconds = 2e-6}; }

TEST(run_order, the_time_of_kernels_is_that_of_the_busiest_thread) {
  const auto seconds = [](std::vector<CallCost> kernels, int count) {
    return seconds_together(kernels, threads(count));
  };
  EXPECT_DOUBLE_EQ(seconds({{10e-6, 1}}, 2), 10e-6);
  EXPECT_DOUBLE_EQ(seconds({{10e-6, 2}}, 2), 7e-6);
  EXPECT_DOUBLE_EQ(seconds({{30e-6, 3}}, 2), 22e-6);
  EXPECT_DOUBLE_EQ(seconds({{30e-6, 3}, {10e-6, 1}}, 2), 22e-6);
  EXPECT_DOUBLE_EQ(seconds({{30e-6, 3}, {10e-6, 1}}, 1), 40e-6);
  EXPECT_NEAR(seconds({{8e-6, 1000000}}, 8), 3e-6, 1e-9);
}

// Four branches that begin with one value and end in one.
TaskList branches() {
  return task_list(8, {{-1, 0},
                       {0, 1, 0, 16},
                       {0, 2},
                       {2, 1, 16, 16},
                       {0, 3},
                       {3, 1, 32, 16},
                       {0, 4},
                       {4, 1, 48, 16},
                       {1, 5}});
}

TEST(run_order, kernels_of_one_tile_run_beside_each_other) {
  const TaskList tasks = branches();
  const std::vector<CallCost> costs(tasks.calls.size(), CallCost{10e-6, 1});
  const RunOrder order = plan_run_order(tasks, costs, threads(4));
  EXPECT_EQ(order, (RunOrder{{0}, {1, 2, 4, 6}, {3, 5, 7}, {8}}));
  EXPECT_TRUE(verify(order, tasks).ok()) << verify(order, tasks).message();
  EXPECT_EQ(time_steps(order, tasks.calls.size()), (std::vector<int>{0, 1, 1, 2, 1, 2, 1, 2, 3}));
}

TEST(run_order, one_thread_leaves_the_order_alone) {
  const TaskList tasks = branches();
  const std::vector<CallCost> costs(tasks.calls.size(), CallCost{10e-6, 3});
  EXPECT_EQ(plan_run_order(tasks, costs, threads(1)).size(), tasks.calls.size());
}

TEST(run_order, long_kernels_that_fill_the_threads_stay_apart) {
  const TaskList tasks = branches();
  std::vector<CallCost> costs(tasks.calls.size(), CallCost{1e-3, 64});
  EXPECT_EQ(plan_run_order(tasks, costs, threads(4)).size(), tasks.calls.size());
  // But those whose last tiles leave threads idle do not,
  costs[1] = costs[2] = {1e-3, 6};
  RunOrder order = plan_run_order(tasks, costs, threads(4));
  EXPECT_EQ(order[1], (std::vector<int>{1, 2}));
  // and what is so short that fork and join count goes with any.
  costs.assign(tasks.calls.size(), {1e-3, 64});
  costs[6] = {4e-6, 64};
  order = plan_run_order(tasks, costs, threads(4));
  EXPECT_EQ(order[1], (std::vector<int>{1, 6})) << "the largest tiles first";
}

TEST(run_order, calls_that_take_no_company_run_alone) {
  const TaskList tasks = branches();
  std::vector<CallCost> costs(tasks.calls.size(), CallCost{10e-6, 1});
  costs[2].alone = true;
  const RunOrder order = plan_run_order(tasks, costs, threads(4));
  EXPECT_EQ(order, (RunOrder{{0}, {1, 4, 6}, {2}, {3, 5, 7}, {8}}));
  EXPECT_TRUE(verify(order, tasks).ok());
}

TEST(run_order, the_window_says_how_far_a_call_moves) {
  const TaskList tasks = branches();
  const std::vector<CallCost> costs(tasks.calls.size(), CallCost{10e-6, 1});
  RunOrderOptions options = threads(4);
  options.window = 1;
  EXPECT_EQ(plan_run_order(tasks, costs, options),
            (RunOrder{{0}, {1, 2}, {3, 4}, {5, 6}, {7}, {8}}));
  options.window = 0;
  EXPECT_EQ(plan_run_order(tasks, costs, options).size(), tasks.calls.size());
}

TEST(run_order, verify_finds_what_is_wrong) {
  const TaskList tasks = branches();
  const auto message = [&](const RunOrder& order) { return verify(order, tasks).message(); };
  EXPECT_NE(message({{0}, {1, 2, 4, 6}, {3, 5, 7}}).find("once"), std::string::npos);
  EXPECT_NE(message({{0}, {1, 2, 4, 6}, {3, 5, 7}, {7}}).find("once"), std::string::npos);
  EXPECT_NE(message({{0, 1}, {2, 4, 6}, {3, 5, 7}, {8}}).find("call 1 does not run behind call 0"),
            std::string::npos);
  EXPECT_NE(message({{0}, {1, 2, 4, 6}, {8}, {3, 5, 7}}).find("behind"), std::string::npos);
}

// Memory: what runs together lives together.
TEST(run_order, calls_that_run_together_share_no_memory) {
  // Two chains: 0 -> 1 -> 2 and 3 -> 4 -> 5 take two buffers one after the other, four together.
  const TaskList tasks = task_list(6, {{-1, 0}, {0, 1}, {1, 2}, {-1, 3}, {3, 4}, {4, 5}});
  const int64_t bytes = kRows * kColumns * 4;
  EXPECT_EQ(plan_memory(tasks).arena_bytes, 2 * bytes);
  const RunOrder order = {{0, 3}, {1, 4}, {2, 5}};
  ASSERT_TRUE(verify(order, tasks).ok());
  const MemoryPlan plan = plan_memory(tasks, {}, time_steps(order, 6));
  EXPECT_TRUE(verify(plan, tasks).ok()) << verify(plan, tasks).message();
  EXPECT_EQ(plan.arena_bytes, 4 * bytes);
  MemoryPlan wrong = plan;
  wrong.offsets[3] = wrong.offsets[0];
  EXPECT_NE(verify(wrong, tasks).message().find("at the same time"), std::string::npos);
}

TEST(run_order, the_arena_grows_no_more_than_it_may) {
  const TaskList tasks = task_list(6, {{-1, 0}, {0, 1}, {1, 2}, {-1, 3}, {3, 4}, {4, 5}});
  const std::vector<CallCost> costs(tasks.calls.size(), CallCost{10e-6, 1});
  const RunPlan together = plan_run(tasks, costs, {}, threads(2), {2});
  EXPECT_EQ(together.order, (RunOrder{{0, 3}, {1, 4}, {2, 5}}));
  EXPECT_EQ(together.memory.arena_bytes, 4 * kRows * kColumns * 4);
  const RunPlan fewer = plan_run(tasks, costs, {}, threads(2), {1.5});
  EXPECT_EQ(fewer.order, (RunOrder{{0}, {1}, {2, 3}, {4}, {5}})) << "a smaller window";
  const RunPlan apart = plan_run(tasks, costs, {}, threads(2), {1.25});
  EXPECT_EQ(plan_run(tasks, costs, {}, threads(2), {1, 4 * kRows * kColumns * 4}).order,
            together.order);
  EXPECT_EQ(apart.order.size(), 6u);
  EXPECT_EQ(apart.memory.arena_bytes, 2 * kRows * kColumns * 4);
}

TEST(run_order, a_result_is_written_over_an_operand_only_if_no_neighbour_reads_it) {
  const InPlace pairs[] = {{1, 0, 1}};
  const int64_t bytes = kRows * kColumns * 4;
  const TaskList alone = task_list(4, {{-1, 0}, {0, 1}, {-1, 2}});
  const RunOrder order = {{0}, {1, 2}};
  EXPECT_EQ(plan_memory(alone, pairs, time_steps(order, 3)).arena_bytes, 2 * bytes);
  const TaskList neighbour = task_list(4, {{-1, 0}, {0, 1}, {0, 2}});
  const MemoryPlan plan = plan_memory(neighbour, pairs, time_steps(order, 3));
  EXPECT_NE(plan.offsets[0], plan.offsets[1]);
  EXPECT_TRUE(verify(plan, neighbour, pairs).ok());
}

TEST(run_order, random_models_run_in_an_order_that_verifies) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const auto buffers = static_cast<int>(rng.between(2, 12));
    std::vector<Copy> copies;
    for (int64_t i = rng.between(1, 40); i > 0; --i) {
      Copy copy = {.from = static_cast<int>(rng.below(buffers)),
                   .to = static_cast<int>(rng.below(buffers - 1)),
                   .first = rng.below(4) * 16,
                   .count = 16,
                   .from_first = rng.below(4) * 16};
      if (copy.to >= copy.from) ++copy.to;
      copies.push_back(copy);
    }
    const TaskList tasks = task_list(buffers, copies);
    std::vector<CallCost> costs;
    for (size_t i = 0; i < copies.size(); ++i)
      costs.push_back(
          {static_cast<double>(rng.between(1, 40)) * 1e-6, rng.between(1, 9), rng.chance(0.1)});
    const RunOrder order =
        plan_run_order(tasks, costs, threads(static_cast<int>(rng.between(1, 8))));
    EXPECT_TRUE(verify(order, tasks).ok()) << verify(order, tasks).message();
    const MemoryPlan plan = plan_memory(tasks, {}, time_steps(order, tasks.calls.size()));
    EXPECT_TRUE(verify(plan, tasks).ok()) << verify(plan, tasks).message();
    for (const std::vector<int>& group : order) {
      for (const int call : group)
        EXPECT_TRUE(group.size() == 1 || !costs[static_cast<size_t>(call)].alone);
    }
  }
}

TEST(run_order, calls_stay_on_their_side_of_a_loop) {
  // Six calls that need nothing of each other; the middle two are a loop.
  TaskList tasks = task_list(6, {{-1, 0}, {-1, 1}, {-1, 2}, {-1, 3}, {-1, 4}, {-1, 5}});
  const std::vector<CallCost> costs(6, CallCost{1e-4, 1});
  const RunOrderOptions options{.threads = 8, .fork_join_seconds = 1e-6};
  EXPECT_EQ(plan_run_order(tasks, costs, options).size(), 1U);
  tasks.loops = {{.name = "loop", .first_call = 2, .end_call = 4, .begin = 0, .end = 1}};
  tasks.boundaries = {2, 4};
  const RunOrder order = plan_run_order(tasks, costs, options);
  EXPECT_EQ(order, (Groups{{0, 1}, {2, 3}, {4, 5}}));
  EXPECT_TRUE(verify(order, tasks).ok());
  EXPECT_FALSE(verify({{0, 1}, {3}, {4, 5}, {2}}, tasks).ok());
}

}  // namespace
}  // namespace hone::graph
