// What may go wrong while a real worker tunes: each fault costs at most the candidate, and the same
// command goes on where it stopped. The program is its own worker, and its own tuner to be killed
// (see main).
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <ctime>
#include <map>
#include <thread>

#include "hone/base/child_processes_testing.h"
#include "hone/base/file.h"
#include "hone/db/registry.h"
#include "hone/measure/local_runner.h"
#include "hone/measure/test_job.h"
#include "hone/measure/worker.h"
#include "hone/search/test_tasks.h"

extern char** environ;

namespace {
// The clock on the wall jumps by up to four days, back and forth, whenever it is read.
std::atomic<bool> clock_jumps = false;
std::atomic<int64_t> wall_clock_reads = 0;
}  // namespace

// Instead of the C library's: all that reads a clock in this program comes here.
extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, now));
  if (clock_jumps && clock == CLOCK_REALTIME)
    now->tv_sec += (wall_clock_reads++ * 7919 % 9 - 4) * 86'400;
  return result;
}
extern "C" time_t time(time_t* seconds) noexcept {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (seconds != nullptr) *seconds = now.tv_sec;
  return now.tv_sec;
}

namespace hone::search {
namespace {

using trial::Outcome;

struct RealTuning : TestTasks {
  std::unique_ptr<measure::Runner> runner;
  std::unique_ptr<db::Store> store;

  explicit RealTuning(const std::string& database, const db::StoreOptions& store_options = {}) {
    auto local =
        measure::make_local_runner({.executable = "/proc/self/exe",
                                    .arguments = {"worker", clock_jumps ? "jumping" : "steady"},
                                    .memory_bytes = int64_t{2} << 30});
    EXPECT_TRUE(local.ok()) << local.status().message();
    runner = *std::move(local);
    auto opened = db::open_store(database, store_options);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    store = *std::move(opened);
  }
  [[nodiscard]] Result<TuneResult> tune(int max_trials, double seconds = 60,
                                        measure::Runner* other = nullptr) const {
    TuneLoopOptions o = options(max_trials);
    o.runner = other != nullptr ? other : runner.get();
    o.store = store.get();
    o.start = real_clock().now_seconds();
    o.deadline = o.start + seconds;
    return tune_tasks(tasks, o);
  }
  [[nodiscard]] std::map<Outcome, int> outcomes() const {
    std::map<Outcome, int> count;
    const auto records = store->query({});
    EXPECT_TRUE(records.ok());
    for (const trial::Record& record : *records) ++count[record.outcome];
    return count;
  }
  // The result is what the store calls best, and that is right.
  void check(const TuneResult& result) const {
    for (size_t t = 0; t < tasks.size(); ++t) {
      EXPECT_GT(result.tasks[t].seconds, 0);
      const auto best = store->best({.task = tasks[t].key, .device = "test", .threads = 1});
      ASSERT_TRUE(best.ok() && best->size() == 1) << tasks[t].name;
      EXPECT_EQ(best->front().outcome, Outcome::kOk);
      EXPECT_TRUE(best->front().verified);
      EXPECT_EQ(best->front().steps, schedule::to_string(result.tasks[t].steps));
    }
  }
};

std::string database_of(const Result<TempDir>& folder) {
  EXPECT_TRUE(folder.ok());
  return folder->file("hone.db");
}

// Every third job has a kernel of measure/test_kernels.cc instead of its own, or wants too much.
class FaultyRunner final : public measure::Runner {
 public:
  explicit FaultyRunner(measure::Runner& runner) : runner_(runner) {}
  [[nodiscard]] std::string_view name() const override { return "faulty"; }
  [[nodiscard]] Status submit(std::vector<measure::Job> batch) override {
    static constexpr const char* kFaults[] = {
        "hangs",  "writes_behind", "writes_before", "writes_far_behind", "reads_null",
        "aborts", "kills_itself",  "eats_memory",   "returns_seven",     ""};
    for (measure::Job& job : batch) {
      if (++jobs_ % 3 != 0) continue;
      const std::string fault = kFaults[faults_++ % std::size(kFaults)];
      if (fault.empty()) {
        job.executable.scratch_bytes = int64_t{100} << 30;
        continue;
      }
      job.executable.code = measure::test_object();
      job.executable.entries = {{fault, 1, false}};
      job.timeout_seconds = 0.3;
    }
    return runner_.submit(std::move(batch));
  }
  [[nodiscard]] Result<std::vector<measure::Measurement>> collect() override {
    return runner_.collect();
  }
  void cancel() override { runner_.cancel(); }
  [[nodiscard]] size_t faults() const { return faults_; }

 private:
  measure::Runner& runner_;
  int jobs_ = 0;
  size_t faults_ = 0;
};

TEST(faults, bad_kernels_cost_the_candidate_only) {
  const Result<TempDir> folder = TempDir::create();
  const RealTuning tuning(database_of(folder));
  FaultyRunner faulty(*tuning.runner);
  const auto result = tuning.tune(32, 60, &faulty);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->trials, 32);
  EXPECT_GE(faulty.faults(), 10U);
  tuning.check(*result);
  std::map<Outcome, int> count = tuning.outcomes();
  EXPECT_GE(count[Outcome::kOk], 12);
  EXPECT_GE(count[Outcome::kCrash] + count[Outcome::kTimeout] + count[Outcome::kWrongAnswer] +
                count[Outcome::kLoad],
            6);
  EXPECT_GE(count[Outcome::kCrash], 2);
}

// Kills the worker while it measures, every other batch.
class KillingRunner final : public measure::Runner {
 public:
  explicit KillingRunner(measure::Runner& runner) : runner_(runner) {}
  [[nodiscard]] std::string_view name() const override { return "killing"; }
  [[nodiscard]] Status submit(std::vector<measure::Job> batch) override {
    HONE_RETURN_IF_ERROR(runner_.submit(std::move(batch)));
    if (++submissions_ % 2 != 0) return ok_status();
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    for (const pid_t worker : children_of(getpid())) killed_ += kill(worker, SIGKILL) == 0;
    return ok_status();
  }
  [[nodiscard]] Result<std::vector<measure::Measurement>> collect() override {
    return runner_.collect();
  }
  void cancel() override { runner_.cancel(); }
  [[nodiscard]] int killed() const { return killed_; }

 private:
  measure::Runner& runner_;
  int submissions_ = 0, killed_ = 0;
};

TEST(faults, workers_that_somebody_kills_cost_nothing_but_time) {
  const Result<TempDir> folder = TempDir::create();
  const RealTuning tuning(database_of(folder));
  KillingRunner killing(*tuning.runner);
  const auto result = tuning.tune(24, 60, &killing);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->trials, 24);
  EXPECT_GT(killing.killed(), 0);
  tuning.check(*result);
  EXPECT_GE(tuning.outcomes()[Outcome::kOk], 20) << "a job is run again";
}

// This program as a tuner of its own, on the same tasks.
pid_t start_tuner(const std::string& database) {
  pid_t pid = -1;
  std::string words[] = {"tuner", database};
  char* argv[] = {words[0].data(), words[1].data(), nullptr};
  EXPECT_EQ(posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, argv, environ), 0);
  return pid;
}

TEST(faults, a_killed_tuner_loses_nothing_stored_and_goes_on) {
  const Result<TempDir> folder = TempDir::create();
  const std::string database = database_of(folder);
  size_t kept = 0;
  for (int round = 0; round < 2; ++round) {
    const pid_t tuner = start_tuner(database);
    size_t stored = 0;
    for (int i = 0; i < 3000 && stored < kept + 8; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      const auto store = db::open_store(database, {.read_only = true});
      if (const auto records = store.ok() ? (*store)->query({}) : store.status(); records.ok())
        stored = records->size();
    }
    const std::vector<pid_t> workers = children_of(tuner);
    kill(tuner, SIGKILL);
    waitpid(tuner, nullptr, 0);
    const auto store = db::open_store(database);
    ASSERT_TRUE(store.ok()) << store.status().message();
    const auto records = (*store)->query({});
    ASSERT_TRUE(records.ok());
    EXPECT_GE(records->size(), stored);
    EXPECT_GE(stored, kept + 8) << "round " << round;
    kept = records->size();
    for (const pid_t worker : workers) {
      for (int i = 0; i < 500 && kill(worker, 0) == 0; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      EXPECT_NE(kill(worker, 0), 0) << "a worker lives on";
    }
  }
  const RealTuning tuning(database);
  const auto result = tuning.tune(16);
  ASSERT_TRUE(result.ok()) << result.status().message();
  tuning.check(*result);
  EXPECT_GT(tuning.store->query({})->size(), kept);
}

TEST(faults, a_full_disk_keeps_what_was_stored_and_space_lets_it_go_on) {
  const Result<TempDir> folder = TempDir::create();
  const std::string database = database_of(folder);
  {
    // Bytes that the file may have: a disk of this size, which takes some batches of 8 records.
    const RealTuning full(database, {.max_bytes = 192 * 1024});
    const auto result = full.tune(0);
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_NE(result->store_status.message().find("what was stored before is kept"),
              std::string::npos)
        << result->store_status.message();
    EXPECT_GT(result->tasks[0].seconds, 0) << "what was found by then is of use";
  }
  const RealTuning tuning(database);
  const auto kept = tuning.store->query({});
  ASSERT_TRUE(kept.ok()) << kept.status().message();
  EXPECT_GT(kept->size(), 8U);
  const auto result = tuning.tune(8);
  ASSERT_TRUE(result.ok()) << result.status().message();
  tuning.check(*result);
  EXPECT_GT(tuning.store->query({})->size(), kept->size());
}

TEST(faults, jumps_of_the_clock_on_the_wall_change_nothing) {
  const Result<TempDir> folder = TempDir::create();
  clock_jumps = true;
  const double start = real_clock().now_seconds();
  {
    const RealTuning tuning(database_of(folder));
    const auto result = tuning.tune(16);
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(result->trials, 16) << "a budget ended early";
    tuning.check(*result);
    EXPECT_GE(tuning.outcomes()[Outcome::kOk], 14);
    const auto records = tuning.store->query({.outcome = Outcome::kOk});
    ASSERT_TRUE(records.ok());
    for (const trial::Record& record : *records) EXPECT_LT(record.centre, 1);
    // The records carry the wall clock's time, so it was read, and it jumped.
    EXPECT_GT(wall_clock_reads, 0);
  }
  clock_jumps = false;
  EXPECT_LT(real_clock().now_seconds() - start, 55) << "a wait for a time that does not come";
}

}  // namespace
}  // namespace hone::search

int main(int argc, char** argv) {
  if (argc == 5 && std::strcmp(argv[1], "worker") == 0) {
    clock_jumps = std::strcmp(argv[2], "jumping") == 0;
    return hone::measure::worker_main(std::atoi(argv[4]));
  }
  if (argc == 2 && std::strcmp(argv[0], "tuner") == 0)
    return hone::search::RealTuning(argv[1]).tune(0).ok() ? 0 : 1;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
