// search/tune_tasks_testing.h - for tests of tune_tasks: a run without a machine, and its database.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "hone/backend/compiled_late_testing.h"
#include "hone/backend/registry.h"
#include "hone/base/file.h"
#include "hone/base/hash.h"
#include "hone/db/registry.h"
#include "hone/measure/null_runner.h"
#include "hone/schedule/lower.h"
#include "hone/search/test_tasks.h"

namespace hone::search {

inline constexpr int kTrials = 24;

// Two tasks on a runner that gives each machine code a time of its own and moves the clock.
struct TuneFixture : TestTasks {
  backend::testing::CpusCompileLate backend;
  ManualClock clock;
  int measured = 0;
  std::set<uint64_t> codes;
  measure::NullRunner runner{[this](const measure::Job& job) -> Result<double> {
    clock.advance(0.05);
    ++measured;
    codes.insert(hash_string(job.executable.code.str()));
    if (fail && measured % 5 == 0) return error(Code::kTimeout, "too slow");
    return code_seconds(job);
  }};
  bool fail = false;
  TuneLoopOptions options = TestTasks::options(kTrials);

  static double code_seconds(const measure::Job& job) {
    return 1e-4 * (1 + static_cast<double>(hash_string(job.executable.code.str()) % 1000) / 100);
  }
  TuneFixture() {
    options.context.tolerance = 0;
    // However many cores there are.
    options.compile_threads = 2;
    options.overlap = true;
    options.runner = &runner;
    options.clock = &clock;
    options.deadline = 10;
  }
};

// An empty database in a folder of its own.
class TestStore {
 public:
  TestStore() {
    Result<std::unique_ptr<db::Store>> opened = db::open_store(folder_.file("hone.db"));
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    store_ = std::move(opened).value();
  }
  [[nodiscard]] db::Store* get() const { return store_.get(); }
  db::Store* operator->() const { return store_.get(); }

 private:
  TempDir folder_ = TempDir::create().value();
  std::unique_ptr<db::Store> store_;
};

// A TuneFixture after a run that stored what it measured.
struct StoredFixture : TuneFixture {
  const TestStore store;
  StoredFixture() {
    options.store = store.get();
    options.context.tolerance = 1e-4;
    const Result<TuneResult> result = tune_tasks(tasks, options);
    EXPECT_TRUE(result.ok()) << result.status().message();
  }
  // Returns the best records of the first task.
  [[nodiscard]] Result<std::vector<trial::Record>> best() const {
    return store->best({.task = tasks[0].key, .device = "test", .threads = 1});
  }
};

// Returns the job of a stored schedule, as the runner gets it.
inline measure::Job job_of(const TuneTask& task, const std::string& steps) {
  const Result<schedule::Steps> parsed = schedule::parse_steps(steps);
  EXPECT_TRUE(parsed.ok());
  Result<backend::Executable> executable =
      backend::compile(*schedule::lower(*task.dag, *parsed), target::host());
  EXPECT_TRUE(executable.ok());
  return {.executable = std::move(executable).value()};
}

// Returns the seconds of a stored schedule on a quiet machine.
inline double undisturbed_seconds(const TuneTask& task, const std::string& steps) {
  return TuneFixture::code_seconds(job_of(task, steps));
}

}  // namespace hone::search
