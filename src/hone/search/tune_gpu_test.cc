// Tuning for a GPU, whose candidates are compiled ahead while others are measured.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "hone/ir/parser.h"
#include "hone/search/tune_tasks_testing.h"

namespace hone::search {
namespace {

struct GpuFixture : TuneFixture {
  target::Target gpu = target::find("opencl-generic").value();
  GpuFixture() {
    options.context.target = &gpu;
    options.compile_threads = 3;
    options.overlap = true;
    options.batch = 2;
  }
};

TEST(tune_gpu, candidates_compiled_ahead_are_measured_in_the_same_order) {
  std::vector<std::string> texts;
  for (int run = 0; run < 2; ++run) {
    GpuFixture f;
    const Result<TuneResult> result = tune_tasks(f.tasks, f.options);
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(result->trials, kTrials);
    EXPECT_GE(result->compiled, kTrials);
    EXPECT_GT(result->compile_seconds, 0);
    std::string& text = texts.emplace_back();
    for (const TunedTask& task : result->tasks) {
      EXPECT_GE(task.trials, 4);
      text += schedule::to_string(task.steps);
      for (const MeasuredSchedule& next : task.runners_up) text += schedule::to_string(next.steps);
    }
  }
  EXPECT_EQ(texts[0], texts[1]);
}

// More candidates are on their way than a task may have.
TEST(tune_gpu, each_task_gets_as_many_trials_as_are_allowed) {
  GpuFixture f;
  f.options.max_trials = 0;
  f.options.max_task_trials = 5;
  const Result<TuneResult> result = tune_tasks(f.tasks, f.options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  for (const TunedTask& task : result->tasks) EXPECT_EQ(task.trials, 5);
}

// Code with so many spilled bytes.
Candidate spilling(int64_t bytes) {
  Candidate candidate;
  candidate.job.executable.figures.emplace();
  candidate.job.executable.figures->registers = 255;
  candidate.job.executable.figures->spill_bytes = bytes;
  return candidate;
}

TEST(tune_gpu, code_that_spills_many_registers_is_not_measured) {
  Candidate much = spilling(256), little = spilling(255), trusted = spilling(4096), unknown;
  trusted.trusted = true;
  for (Candidate* one : {&much, &little, &trusted, &unknown}) drop_if_it_spills(*one);
  EXPECT_EQ(much.dropped, Dropped::kSpills);
  EXPECT_EQ(much.status.message(), "a thread spills 256 bytes of registers, 255 are tried");
  for (const Candidate* one : {&little, &trusted, &unknown}) {
    EXPECT_TRUE(one->runs());
    EXPECT_EQ(one->dropped, Dropped::kNo);
  }
}

// Blocks of the device have fewer threads.
TEST(tune_gpu, candidates_that_the_device_cannot_run_are_counted) {
  GpuFixture f;
  const Result<ir::Program> large = ir::parse_program(R"(program "large" {
  output y: f32[1024]
  phase { parallel b in 0..1 { thread t in 0..1024 { y[t] = 1.0 } } }
}
)");
  ASSERT_TRUE(large.ok()) << large.status().message();
  f.tasks[0].lowered = [&, first = true](const schedule::Steps&) mutable {
    return std::exchange(first, false) ? std::make_shared<const ir::Program>(*large) : nullptr;
  };
  const TestStore store;
  f.options.store = store.get();
  const Result<TuneResult> result = tune_tasks(f.tasks, f.options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->dropped.cannot_run, 1);
  EXPECT_EQ(result->dropped.spilling, 0);
  EXPECT_EQ(result->failures.at(trial::Outcome::kCompile).count, 1);
  const auto records = store->query({.task = f.tasks[0].key, .outcome = trial::Outcome::kCompile});
  ASSERT_EQ(records->size(), 1);
  EXPECT_NE(records->front().message.find("a block of 1024 threads"), std::string::npos)
      << records->front().message;
}

TEST(tune_gpu, what_is_on_its_way_is_given_up_at_the_end) {
  GpuFixture f;
  std::atomic<bool> interrupted = false;
  f.options.max_trials = 0;
  f.options.deadline = 1000;
  f.options.interrupted = &interrupted;
  f.options.on_progress = [&](const TuneProgress& progress) { interrupted = progress.trials >= 4; };
  const Result<TuneResult> result = tune_tasks(f.tasks, f.options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(result->interrupted);
  EXPECT_LE(result->trials, 8);

  // A runner that fails ends the run in the same way.
  f.options.interrupted = nullptr;
  f.options.on_progress = nullptr;
  struct Broken final : measure::Runner {
    [[nodiscard]] std::string_view name() const override { return "broken"; }
    [[nodiscard]] Status submit(std::vector<measure::Job>) override { return ok_status(); }
    [[nodiscard]] Result<std::vector<measure::Measurement>> collect() override {
      return error(Code::kInternal, "it is broken");
    }
    void cancel() override {}
  } broken;
  f.options.runner = &broken;
  EXPECT_EQ(tune_tasks(f.tasks, f.options).status().message(), "it is broken");
}

}  // namespace
}  // namespace hone::search
