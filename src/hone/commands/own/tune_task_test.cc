// A task that is tuned alone, on a machine without a device, where what is longer to run as code is
// slower.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "hone/base/clock.h"
#include "hone/commands/null_job_testing.h"
#include "hone/commands/own/task_state.h"
#include "hone/commands/tune.h"
#include "hone/commands/varying_rows_testing.h"
#include "hone/db/registry.h"
#include "hone/machine/null.h"
#include "hone/null_machine.h"

namespace hone {
namespace {

struct Fixture {
  testing::NullJob job;
  graph::Graph graph = testing::network("net", 8);
  CompileOptions compile;
  TuneTaskOptions options;
  Fixture() {
    compile = job.options();
    compile.advanced.hooks = null_machine(0);
    options.search.budget_seconds = 60;
    options.search.max_trials = 16;
  }
  // The task with the most arithmetic.
  [[nodiscard]] ModelTask task() const {
    const std::vector<ModelTask> tasks = model_tasks(graph, compile).value();
    return *std::max_element(tasks.begin(), tasks.end(), [](const auto& a, const auto& b) {
      return a.info().flops < b.info().flops;
    });
  }
  [[nodiscard]] std::vector<trial::Record> stored() const {
    return *db::open_store(compile.records.db).value()->query({});
  }
};

TEST(tune_task, what_it_measures_is_stored_and_served) {
  Fixture f;
  const ModelTask task = f.task();
  const Result<TaskTuning> tuned = task.tune(f.options);
  ASSERT_TRUE(tuned.ok()) << tuned.status().message();
  EXPECT_GT(tuned->trials, 8);
  EXPECT_LE(tuned->trials, 16);
  EXPECT_GT(tuned->seconds, 0);
  EXPECT_LE(tuned->seconds, tuned->untuned_seconds);
  EXPECT_GT(tuned->bound_seconds, 0);
  EXPECT_FALSE(tuned->finished || tuned->interrupted);
  const std::vector<trial::Record> records = f.stored();
  EXPECT_EQ(std::ssize(records), tuned->trials);
  for (const trial::Record& record : records) {
    EXPECT_EQ(record.task, task.info().key);
    EXPECT_EQ(record.model, "net");
  }
  const Result<CompileSummary> compiled = compile(f.graph, f.job.folder.file("net.so"), f.compile);
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  for (const TaskSummary& line : compiled->tasks)
    EXPECT_EQ(line.source == "stored", line.key == task.info().key) << line.name;
}

TEST(tune_task, smaller_sizes_are_measured_if_shapes_vary) {
  Fixture f;
  f.graph = testing::product_of_rows(64, 128);
  const auto parts = [&] {
    std::map<std::string, int> count;
    const db::Filter filter = {.parts = db::Filter::Parts::kParts};
    for (const trial::Record& record : *db::open_store(f.compile.records.db).value()->query(filter))
      ++count[record.part];
    return count;
  };
  const Result<TaskTuning> tuned = f.task().tune(f.options);
  ASSERT_TRUE(tuned.ok()) << tuned.status().message();
  EXPECT_EQ(std::ssize(f.stored()), tuned->trials);
  const std::map<std::string, int> first = parts();
  ASSERT_EQ(first.size(), 3U);
  EXPECT_TRUE(first.contains("whole"));
  EXPECT_TRUE(first.contains("2[0]<1"));
  for (const auto& [part, count] : first) EXPECT_GE(count, 2) << part;

  // Who compiles has these times; the same schedule is not measured again.
  const Result<CompileSummary> compiled = compile(f.graph, f.job.folder.file("net.so"), f.compile);
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  ASSERT_EQ(compiled->tasks[0].sizes.size(), 1U);
  EXPECT_EQ(compiled->tasks[0].sizes[0].measured_points(), 3U);
  f.options.search.max_trials = 1;
  ASSERT_TRUE(f.task().tune(f.options).ok());
  EXPECT_EQ(parts(), first);
}

TEST(tune_task, another_search_goes_on_where_the_last_one_ended) {
  Fixture f;
  const Result<TaskTuning> first = f.task().tune(f.options);
  ASSERT_TRUE(first.ok()) << first.status().message();
  const size_t before = f.stored().size();
  const Result<TaskTuning> second = f.task().tune(f.options);  // of another worker
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_LE(second->seconds, first->seconds);
  EXPECT_DOUBLE_EQ(second->untuned_seconds, first->seconds);  // it begins with the fastest
  std::set<std::string> schedules;
  for (const trial::Record& record : f.stored()) schedules.insert(record.steps);
  EXPECT_GT(f.stored().size(), before);
  EXPECT_GE(schedules.size() + 2, f.stored().size());  // only the fastest is measured again
}

TEST(tune_task, a_space_that_was_tried_is_finished) {
  Fixture f;
  f.options.search.max_trials = 0;
  f.options.search.strategy = "random";
  f.options.search.batch = 64;
  f.options.search.budget_seconds = 1e4;
  graph::TestModel model;
  model.input("x", {3, 5}).node("Relu", {"x"}, {"y"}).output("y");
  f.graph = model.graph();
  const Result<TaskTuning> tuned = f.task().tune(f.options);
  ASSERT_TRUE(tuned.ok()) << tuned.status().message();
  EXPECT_TRUE(tuned->finished);
}

TEST(tune_task, an_interrupted_search_keeps_what_it_has) {
  Fixture f;
  f.options.search.max_trials = 0;
  std::atomic<bool> stop = false;
  f.options.interrupted = &stop;
  f.options.on_progress = [&](const TuneProgress& progress) { stop = progress.trials > 0; };
  const Result<TaskTuning> tuned = f.task().tune(f.options);
  ASSERT_TRUE(tuned.ok()) << tuned.status().message();
  EXPECT_TRUE(tuned->interrupted);
  EXPECT_EQ(std::ssize(f.stored()), tuned->trials);
}

TEST(tune_task, refuses_what_means_a_whole_model) {
  Fixture f;
  const ModelTask task = f.task();
  const auto refuses = [&](std::string_view message, const SearchOptions& search) {
    const Result<TaskTuning> tuned = task.tune({.search = search});
    EXPECT_EQ(tuned.status().code(), Code::kInvalid);
    EXPECT_NE(tuned.status().message().find(message), std::string::npos)
        << tuned.status().message();
  };
  refuses("the budget is 0 seconds", {.budget_seconds = 0});
  refuses("no option mode", {.mode = "quality"});
  refuses("no option mode or policy_state", {.policy_state = "state"});
  refuses("unknown search strategy 'none'", {.strategy = "none"});
  EXPECT_TRUE(f.stored().empty());
}

TEST(null_machine, waits_instead_of_running) {
  Fixture f;
  f.compile.advanced.hooks = null_machine(0.02);
  EXPECT_EQ(null_machine(0.02), f.compile.advanced.hooks);
  f.options.search.max_trials = 8;
  const double begin = real_clock().now_seconds();
  const Result<TaskTuning> tuned = f.task().tune(f.options);
  ASSERT_TRUE(tuned.ok()) << tuned.status().message();
  EXPECT_GE(real_clock().now_seconds() - begin, 0.02 * tuned->trials);
}

}  // namespace
}  // namespace hone
