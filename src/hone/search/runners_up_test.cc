// Which schedules behind the fastest of a task are compared with it inside the model.
#include <gtest/gtest.h>

#include "hone/compute/dag_testing.h"
#include "hone/measure/null_runner.h"
#include "hone/schedule/lower.h"
#include "hone/search/tune_tasks.h"
#include "hone/search/tune_tasks_testing.h"

namespace hone::search {
namespace {

// The three fastest, and one more that gives other parts to the threads, if they all have the same.
TEST(tune_tasks, runners_up_have_another_split_over_the_threads) {
  TuneFixture f;
  f.options.context.threads = 2;
  f.options.max_trials = 60;
  const Result<TuneResult> result = tune_tasks(f.tasks, f.options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  const auto tiles = [&](size_t task, const schedule::Steps& steps) {
    return schedule::lower(*f.tasks[task].dag, steps).value().phases.back().num_tiles();
  };
  int others = 0;
  for (size_t i = 0; i < result->tasks.size(); ++i) {
    const TunedTask& task = result->tasks[i];
    ASSERT_GE(task.runners_up.size(), 2U);
    ASSERT_LE(task.runners_up.size(), 3U);
    bool is_other = false;
    for (size_t r = 0; r < task.runners_up.size(); ++r) {
      const MeasuredSchedule& next = task.runners_up[r];
      EXPECT_EQ(next.other_split, tiles(i, next.steps) != tiles(i, task.steps));
      is_other |= r < 2 && next.other_split;
      EXPECT_TRUE(r < 2 || (next.other_split && !is_other)) << "else it is one too many";
      others += next.other_split ? 1 : 0;
    }
  }
  EXPECT_GT(others, 0);
}

// Winograd's weights are 1.8 to 7 times as many. On a machine that has them near, it is faster.
TEST(tune_tasks, a_runner_up_has_fewer_weights_where_they_may_lie_further_away) {
  const compute::Dag dag = compute::testing::conv2d({.h = 8, .w = 8, .ic = 16, .oc = 16});
  const auto packed_bytes = [&](const schedule::Steps& steps) {
    int64_t bytes = 0;
    const ir::Program program = schedule::lower(dag, steps).value();
    for (const ir::Param& param : program.params)
      bytes += param.role == ir::Role::kPacked ? param.buffer->bytes() : 0;
    return bytes;
  };
  for (const measure::Weights weights : {measure::Weights::kShared, measure::Weights::kWarm}) {
    TuneFixture f;
    measure::NullRunner runner([&](const measure::Job& job) -> Result<double> {
      f.clock.advance(0.05);
      double packed = 1;
      for (const measure::Argument& argument : job.arguments)
        packed += argument.role == ir::Role::kPacked ? static_cast<double>(argument.bytes) : 0;
      return (1 + 1e-3 * TuneFixture::code_seconds(job)) / packed;
    });
    f.tasks = {{&dag, compute::task_key(dag), 1, "conv"}};
    f.options.runner = &runner;
    f.options.context.weights = weights;
    f.options.max_trials = 40;
    const Result<TuneResult> result = tune_tasks(f.tasks, f.options);
    ASSERT_TRUE(result.ok()) << result.status().message();
    const TunedTask& task = result->tasks[0];
    const bool shared = weights == measure::Weights::kShared;
    ASSERT_EQ(task.runners_up.size(), shared ? 3U : 2U);
    for (size_t r = 0; r < task.runners_up.size(); ++r) {
      const MeasuredSchedule& next = task.runners_up[r];
      EXPECT_EQ(next.fewer_weights, r == 2);
      EXPECT_TRUE(r < 2 || 2 * packed_bytes(next.steps) <= packed_bytes(task.steps));
    }
  }
}

}  // namespace
}  // namespace hone::search
