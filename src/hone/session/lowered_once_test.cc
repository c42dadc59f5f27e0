// A schedule that a search keeps is lowered once: by the search or by whoever built it before.
#include <gtest/gtest.h>

#include <set>

#include "hone/base/hash.h"
#include "hone/graph/test_model.h"
#include "hone/measure/null_runner.h"
#include "hone/session/model_tasks.h"

namespace hone {
namespace {

constexpr int kTrials = 30;

TEST(kernel_table, a_tune_lowers_each_kept_schedule_once) {
  CompileOptions options;
  options.records.use_db = false;
  options.target.threads = 1;
  graph::TestModel network;
  Rng rng(1);
  network.input("x", {16, 32})
      .constant("w", graph::random_tensor({32, 64}, rng))
      .constant("v", graph::random_tensor({64, 48}, rng))
      .node("MatMul", {"x", "w"}, {"h"})
      .node("Softmax", {"h"}, {"s"})
      .node("MatMul", {"s", "v"}, {"y"})
      .output("y");
  const auto session = Session::open(options).value();
  const ModelTasks model = make_tasks(*session, network.graph(), options).value();
  KernelTable& kernels = session->kernels();

  // The library as it is, before the search.
  std::vector<search::TuneTask> tasks;
  for (size_t g = 0; g < model.tasks.groups.size(); ++g) {
    const space::Space& space = *model.space(g);
    const schedule::Steps usual = space.steps(space.default_point());
    ASSERT_TRUE(kernels.build(model.distinct[g], usual).ok());
    tasks.push_back(tune_task(model, g, usual));
  }
  const int64_t before = kernels.lowered();
  ASSERT_EQ(before, std::ssize(tasks));

  // The search asks for every program; those of the start are known.
  std::vector<std::string> asked, known;
  for (search::TuneTask& task : tasks) {
    task.lowered = [&, find = task.lowered, key = task.key](const schedule::Steps& steps) {
      const std::string name = hash_hex(key) + schedule::to_string(steps);
      asked.push_back(name);
      search::ProgramPtr program = find(steps);
      if (program) known.push_back(name);
      return program;
    };
  }
  ManualClock clock;
  measure::NullRunner runner([&](const measure::Job& job) -> Result<double> {
    clock.advance(0.01);
    return 1e-4 * (1 + static_cast<double>(hash_string(job.executable.code.str()) % 1000) / 100);
  });
  search::TuneLoopOptions loop;
  loop.context = task_context(model, 1);
  loop.context.tolerance = 0;
  loop.runner = &runner;
  loop.clock = &clock;
  loop.deadline = 1e6;
  loop.max_trials = kTrials;
  loop.compile_threads = 1;
  loop.overlap = false;
  const search::TuneResult tuned = search::tune_tasks(tasks, loop).value();
  EXPECT_EQ(known.size(), tasks.size());
  EXPECT_EQ(std::set<std::string>(asked.begin(), asked.end()).size(), asked.size())
      << "the search lowers a schedule once";
  EXPECT_GE(std::ssize(asked), tuned.trials);

  // The library afterwards, and those that are compared inside the model.
  int64_t others = 0;
  for (size_t g = 0; g < tasks.size(); ++g) {
    const search::TunedTask& task = tuned.tasks[g];
    keep_programs(*session, model.distinct[g], task);
    std::vector<schedule::Steps> kept = {task.steps};
    for (const search::MeasuredSchedule& next : task.runners_up) kept.push_back(next.steps);
    for (const schedule::Steps& steps : kept) {
      others += steps != *tasks[g].start;
      ASSERT_TRUE(kernels.build(model.distinct[g], steps).ok());
    }
  }
  EXPECT_GT(others, std::ssize(tasks)) << "the search found something else";
  EXPECT_EQ(kernels.lowered(), before) << "nothing that is kept was lowered again";
}

}  // namespace
}  // namespace hone
