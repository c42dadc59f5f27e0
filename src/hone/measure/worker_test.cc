// The worker and what it survives.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "hone/backend/registry.h"
#include "hone/base/child_processes_testing.h"
#include "hone/base/sanitizers.h"
#include "hone/measure/candidate.h"
#include "hone/measure/local_runner.h"
#include "hone/measure/null_runner.h"
#include "hone/measure/protocol.h"
#include "hone/measure/runner_testing.h"
#include "hone/measure/self_test.h"
#include "hone/measure/software_events_testing.h"
#include "hone/measure/sweep.h"

namespace hone::measure {
namespace {

TEST(worker, runs_verifies_and_times_a_kernel) {
  const auto runner = local();
  const auto operands = test_operands();
  for (const int threads : {1, 2}) {
    for (const char* kernel : {"twice", "twice_through_scratch"}) {
      Job job = test_job(kernel, operands, 42);
      job.threads = threads;
      job.timing.max_seconds = 2;  // a busy machine needs them for as many samples
      const Measurement m = measure_one(*runner, job);
      EXPECT_EQ(m.id, 42U);
      ASSERT_EQ(m.outcome, trial::Outcome::kOk) << m.message;
      EXPECT_TRUE(m.verified);
      EXPECT_EQ(m.error, 0);
      EXPECT_GE(m.timing.samples.size(), 5U);
      EXPECT_GT(m.timing.centre, 1e-8);
      EXPECT_LT(m.timing.centre, 1e-3);
    }
  }
}

TEST(worker, prepare_phases_run_once_before) {
  const auto runner = local();
  Job job = test_job("times_packed", test_operands());
  job.executable.entries = {{"pack", 1, true}, {"times_packed", kTestTiles, false}};
  const Measurement m = measure_one(*runner, job);
  EXPECT_EQ(m.outcome, trial::Outcome::kOk) << m.message;
  EXPECT_TRUE(m.verified);
}

TEST(worker, without_tolerance_nothing_is_verified) {
  const auto runner = local();
  Job job = test_job("thrice", test_operands());
  job.tolerance = 0;
  const Measurement m = measure_one(*runner, job);
  EXPECT_EQ(m.outcome, trial::Outcome::kOk);
  EXPECT_FALSE(m.verified);
}

TEST(worker, wrong_answers_are_found) {
  const auto runner = local();
  const auto operands = test_operands(), sparse = test_operands(kTestFloats, true);
  for (const char* kernel : {"thrice", "forgets_the_last", "right_only_once", "writes_behind",
                             "writes_before", "returns_seven"}) {
    // A good candidate before leaves a right answer in the output: it must not help.
    EXPECT_EQ(measure_one(*runner, test_job("twice", operands)).outcome, trial::Outcome::kOk);
    const Measurement m = measure_one(*runner, test_job(kernel, operands));
    EXPECT_EQ(m.outcome, trial::Outcome::kWrongAnswer) << kernel;
    EXPECT_FALSE(m.verified) << kernel;
    EXPECT_FALSE(m.message.empty()) << kernel;
    EXPECT_EQ(measure_one(*runner, test_job(kernel, sparse)).outcome, trial::Outcome::kWrongAnswer)
        << kernel;
  }
  EXPECT_NEAR(measure_one(*runner, test_job("thrice", operands)).error, 0.5, 1e-6);
}

TEST(worker, what_cannot_be_loaded_is_said) {
  const auto runner = local();
  const auto operands = test_operands();
  Job no_object = test_job("twice", operands);
  no_object.executable.code = std::string("not an object file");
  EXPECT_EQ(measure_one(*runner, no_object).outcome, trial::Outcome::kLoad);
  Job no_back_end = test_job("twice", operands);
  no_back_end.executable.kind = target::Kind::kGpu;
  const Measurement of_gpu = measure_one(*runner, no_back_end);
  EXPECT_EQ(of_gpu.outcome, trial::Outcome::kLoad);
  EXPECT_EQ(of_gpu.message, "the worker has no device for this code");
  const Measurement no_symbol = measure_one(*runner, test_job("nothing", operands));
  EXPECT_EQ(no_symbol.outcome, trial::Outcome::kLoad);
  EXPECT_EQ(no_symbol.message, "the executable has no function nothing");
  Job no_operand = test_job("twice", operands);
  no_operand.arguments[0].operand = 17;
  EXPECT_EQ(measure_one(*runner, no_operand).outcome, trial::Outcome::kLoad);
  Job too_large = test_job("twice", operands);
  too_large.arguments[0].bytes *= 2;
  EXPECT_EQ(measure_one(*runner, too_large).outcome, trial::Outcome::kLoad);
  EXPECT_EQ(measure_one(*runner, test_job("twice", operands)).outcome, trial::Outcome::kOk);
}

TEST(worker, a_crash_kills_one_candidate) {
  const auto runner = local();
  const auto operands = test_operands();
  for (const char* kernel :
       {"reads_null", "aborts", "writes_its_input", "writes_far_behind", "kills_itself"}) {
    ASSERT_TRUE(runner
                    ->submit({test_job("twice", operands, 1), test_job(kernel, operands, 2),
                              test_job("twice", operands, 3)})
                    .ok());
    const auto all = runner->collect();
    ASSERT_TRUE(all.ok()) << all.status().message();
    ASSERT_EQ(all->size(), 3U);
    EXPECT_EQ((*all)[0].outcome, trial::Outcome::kOk);
    EXPECT_EQ((*all)[1].outcome, trial::Outcome::kCrash) << kernel;
    EXPECT_NE((*all)[1].message.find("killed by signal"), std::string::npos) << (*all)[1].message;
    EXPECT_EQ((*all)[2].outcome, trial::Outcome::kOk);
    EXPECT_EQ((*all)[2].id, 3U);
  }
}

TEST(worker, a_hang_ends_at_the_timeout) {
  const auto runner = local();
  Job job = test_job("hangs", test_operands(), 1);
  job.timeout_seconds = 0.2;
  ASSERT_TRUE(runner->submit({job, test_job("twice", test_operands(), 2)}).ok());
  const auto all = runner->collect();
  EXPECT_EQ((*all)[0].outcome, trial::Outcome::kTimeout);
  EXPECT_EQ((*all)[0].message, "not done after 0.2 s");
  EXPECT_EQ((*all)[1].outcome, trial::Outcome::kOk);
}

#ifndef HONE_SANITIZER  // it allows no limit
TEST(worker, a_memory_hog_is_stopped) {
  const auto runner = local({.memory_bytes = int64_t{1} << 30});
  const auto operands = test_operands();
  EXPECT_EQ(measure_one(*runner, test_job("eats_memory", operands)).outcome,
            trial::Outcome::kCrash);
  Job job = test_job("twice", operands);
  job.arguments[3].bytes = int64_t{2} << 30;
  const Measurement m = measure_one(*runner, job);
  EXPECT_EQ(m.outcome, trial::Outcome::kLoad);
  EXPECT_NE(m.message.find("no memory for"), std::string::npos) << m.message;
  EXPECT_EQ(measure_one(*runner, test_job("twice", operands)).outcome, trial::Outcome::kOk);
}
#endif

TEST(worker, killed_from_outside_the_job_is_run_again) {
  const auto runner = local();
  const auto operands = test_operands();
  for (int i = 0; i < 3; ++i) {
    const auto workers = children_of(getpid());
    ASSERT_EQ(workers.size(), 1U);
    kill(workers[0], SIGKILL);
    EXPECT_EQ(measure_one(*runner, test_job("twice", operands)).outcome, trial::Outcome::kOk);
  }
}

TEST(worker, ctrl_c_does_not_end_it) {
  const auto runner = local();
  const auto workers = children_of(getpid());
  ASSERT_EQ(workers.size(), 1U);
  kill(workers[0], SIGINT);
  EXPECT_EQ(measure_one(*runner, test_job("twice", test_operands())).outcome, trial::Outcome::kOk);
  EXPECT_EQ(children_of(getpid()), workers);
  EXPECT_NE(getpgid(workers[0]), getpgid(0)) << "the terminal's signals would reach it";
}

TEST(worker, inherits_no_files) {
  const int fd = open("/dev/null", O_RDONLY);  // not close-on-exec
  const auto runner = local();
  Job job = test_job("sees_open_files", test_operands());
  job.tolerance = 0;
  const Measurement m = measure_one(*runner, job);
  close(fd);
  EXPECT_EQ(m.outcome, trial::Outcome::kOk) << m.message;
}

TEST(worker, ends_with_its_runner) {
  auto runner = local();
  ASSERT_EQ(children_of(getpid()).size(), 1U);
  runner.reset();
  EXPECT_TRUE(children_of(getpid()).empty());
}

TEST(worker, dies_with_its_parent) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t tuner = fork();
  if (tuner == 0) {
    auto runner = make_local_runner();
    Job job = test_job("hangs", test_operands());
    job.timeout_seconds = 60;
    if (!runner.ok() || !(*runner)->submit({job}).ok() || write(ready[1], "x", 1) != 1) _exit(1);
    pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  const auto workers = children_of(tuner);
  kill(tuner, SIGKILL);
  waitpid(tuner, nullptr, 0);
  ASSERT_EQ(workers.size(), 1U);
  close(ready[0]), close(ready[1]);
  bool gone = false;
  for (int i = 0; i < 200 && !gone; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::ifstream file("/proc/" + std::to_string(workers[0]) + "/stat");
    std::string text((std::istreambuf_iterator<char>(file)), {});
    gone = text.empty() || text.find(") Z") != std::string::npos;
  }
  EXPECT_TRUE(gone);
}

TEST(worker, candidates_leave_nothing_behind) {
  const auto runner = local();
  const auto operands = test_operands();
  const auto run = [&](const char* kernel, int count, trial::Outcome expected) {
    std::vector<Job> batch;
    for (int i = 0; i < count; ++i) {
      batch.push_back(test_job(kernel, operands, static_cast<uint64_t>(i)));
      batch.back().timing.max_seconds = 1e-4;
    }
    ASSERT_TRUE(runner->submit(std::move(batch)).ok());
    const auto all = runner->collect();
    ASSERT_TRUE(all.ok()) << all.status().message();
    for (const Measurement& m : *all) EXPECT_EQ(m.outcome, expected) << m.message;
  };
  const auto open_files = [&] {
    const auto workers = children_of(getpid());
    EXPECT_EQ(workers.size(), 1U);
    const std::filesystem::directory_iterator files("/proc/" + std::to_string(workers[0]) + "/fd");
    return std::distance(begin(files), end(files));
  };
  const auto mapped_pages = [&] {
    int64_t pages = 0;
    std::ifstream("/proc/" + std::to_string(children_of(getpid())[0]) + "/statm") >> pages;
    return pages;
  };
  run("twice", 40, trial::Outcome::kOk);
  const auto files = open_files();
  [[maybe_unused]] const int64_t pages = mapped_pages();
  run("twice", 300, trial::Outcome::kOk);
  EXPECT_EQ(open_files(), files);
#ifndef HONE_SANITIZER
  EXPECT_LT((mapped_pages() - pages) * sysconf(_SC_PAGESIZE), 16 << 20);
#endif
  run("reads_null", 5, trial::Outcome::kCrash);
  run("twice", 1, trial::Outcome::kOk);
  EXPECT_EQ(children_of(getpid()).size(), 1U);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), 0) << "a dead worker was not buried";
}

TEST(self_test, a_machine_that_measures_passes) {
  const auto runner = make_tested_runner({}, target::host());
  EXPECT_TRUE(runner.ok()) << runner.status().message();
}

TEST(self_test, says_why_nothing_can_be_measured) {
  NullRunner slow([](const Job&) -> Result<double> { return error(Code::kTimeout, "too slow"); });
  EXPECT_EQ(self_test(slow, target::host()).message(),
            fmt::format("nothing can be measured here: a trial kernel for {} ended as 'timeout': "
                        "too slow",
                        target::host().name));
  NullRunner fast([](const Job&) -> Result<double> { return 1e-6; });
  EXPECT_TRUE(self_test(fast, target::host()).ok());
}

TEST(worker, restarts_fast) {
  const auto runner = local();
  const auto operands = test_operands();
  double least = 1e9;
  for (int i = 0; i < 12 && least > 0.1; ++i) {  // once is enough: other programs may be in the way
    const auto start = std::chrono::steady_clock::now();
    ASSERT_TRUE(
        runner->submit({test_job("reads_null", operands), test_job("twice", operands)}).ok());
    ASSERT_EQ(runner->collect()->back().outcome, trial::Outcome::kOk);
    least = std::min(
        least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  RecordProperty("seconds", std::to_string(least));
#ifndef HONE_SANITIZER
  EXPECT_LT(least, 0.25) << "a crash, a new worker and a job: 15 ms when nothing else runs";
#endif
}

TEST(worker, runs_what_the_compiler_makes) {
  const auto in = ir::make_buffer("in", DType::kF32, {kTestTiles, 256});
  const auto out = ir::make_buffer("out", DType::kF32, {kTestTiles, 256});
  const auto t = ir::make_var("t"), i = ir::make_var("i");
  const ir::Expr x = ir::load(in, {ir::variable(t), ir::variable(i)});
  const ir::Stmt body = ir::make_for(
      t, ir::constant(0), ir::constant(kTestTiles), ir::ForKind::kParallel,
      {ir::make_for(i, ir::constant(0), ir::constant(256), ir::ForKind::kSerial,
                    {ir::make_store(out, {ir::variable(t), ir::variable(i)}, x + x)})});
  const ir::Program program{"double", {{in, ir::Role::kInput}, {out, ir::Role::kOutput}}, {{body}}};
  auto code = backend::compile(program, target::host());
  ASSERT_TRUE(code.ok()) << code.status().message();
  Job job = test_job("", test_operands());
  job.executable = *code;
  job.arguments.resize(2);
  const auto runner = local();
  const Measurement m = measure_one(*runner, job);
  EXPECT_EQ(m.outcome, trial::Outcome::kOk) << m.message;
  EXPECT_TRUE(m.verified);
}

// Hardware counters may be there or not; with others instead, every job that wants it is counted.
TEST(bench, counts_a_job_that_wants_it) {
  const auto operands = test_operands();
  auto mapped = WorkerOperands::map(operands->layout(), dup(operands->fd()));
  ASSERT_TRUE(mapped.ok()) << mapped.status().message();
  Bench bench(&software_events());
  for (const Weights weights : {Weights::kWarm, Weights::kShared}) {
    for (const int threads : {1, 2}) {
      Job job = test_job("twice", operands);
      job.threads = threads, job.weights = weights;
      job.own_cache_bytes = 1 << 16;
      EXPECT_FALSE(bench.run(job, mapped->get()).bounds.has_value());
      job.count_bounds = true;
      const Measurement m = bench.run(job, mapped->get());
      ASSERT_EQ(m.outcome, trial::Outcome::kOk) << m.message;
      EXPECT_TRUE(m.verified);
      EXPECT_EQ(m.bounds.value_or(trial::CountedBounds()).source, may_count() ? "software" : "");
    }
  }
}

TEST(worker, without_counters_a_job_is_measured_all_the_same) {
  const auto runner = local();
  Job job = test_job("twice", test_operands());
  job.count_bounds = true;
  const Measurement m = measure_one(*runner, job);
  EXPECT_EQ(m.outcome, trial::Outcome::kOk) << m.message;
  EXPECT_GT(m.timing.centre, 0);
  EXPECT_TRUE(machine_events().ok() || !m.bounds.has_value());
}

// Neighbours on a shared machine may keep its caches busy for a while.
TEST(sweep, a_megabyte_stays_in_some_cache) {
  bool stays = false;
  for (int attempt = 0; attempt < 40 && !stays; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    stays = stays_in_cache(1 << 20);
  }
  EXPECT_TRUE(stays);
}

}  // namespace
}  // namespace hone::measure
