// Tests what a runner on this machine measures, and what happens to its jobs; worker_test.cc has
// main().
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "hone/base/wire.h"
#include "hone/measure/protocol.h"
#include "hone/measure/runner_testing.h"
#include "hone/measure/worker_process.h"

namespace hone::measure {
namespace {

using wire::MessageType;

TEST(runner, measures_the_true_time_and_stops_early_if_slow) {
  const auto runner = local();
  const auto operands = test_operands();
  Job job = test_job("takes_1_ms", operands);
  job.executable.entries[0].num_tiles = 1;
  job.tolerance = 0;
  job.timing.max_seconds = 2;
  const Measurement m = measure_one(*runner, job);
  ASSERT_EQ(m.outcome, trial::Outcome::kOk);
  EXPECT_GT(m.timing.centre, 0.99e-3);
  // The least: other programs may take a part of the time.
  EXPECT_LT(*std::min_element(m.timing.samples.begin(), m.timing.samples.end()), 2e-3);
  job.executable.entries[0].symbol = "takes_5_ms";
  job.timing.best = 1e-3;
  const Measurement slow = measure_one(*runner, job);
  EXPECT_TRUE(slow.timing.stopped_early);
  EXPECT_LE(slow.timing.runs, 2);
}

TEST(runner, a_duel_times_both_in_turns) {
  const auto runner = local();
  const auto operands = test_operands();
  Job fast = test_job("takes_1_ms", operands), slow = test_job("takes_5_ms", operands);
  for (Job* job : {&fast, &slow}) job->executable.entries[0].num_tiles = 1, job->tolerance = 0;
  fast.rival = std::make_shared<Job>(slow);
  const Measurement won = measure_one(*runner, fast);
  ASSERT_EQ(won.outcome, trial::Outcome::kOk) << won.message;
  EXPECT_EQ(judge(won.duel), trial::Verdict::kFaster);
  EXPECT_LE(won.duel.pairs(), 20U);
  EXPECT_LT(duel_ratio(won.duel), 0.6);
  EXPECT_EQ(won.timing.samples, won.duel.challenger);
  fast.swap_memory = true;
  EXPECT_EQ(judge(measure_one(*runner, fast).duel), trial::Verdict::kFaster);
  slow.rival = std::make_shared<Job>(test_job("takes_1_ms", operands));
  EXPECT_EQ(judge(measure_one(*runner, slow).duel), trial::Verdict::kSlower);
  // A rival's right answer does not hide a wrong one, nor a rival without code.
  Job wrong = test_job("thrice", operands);
  wrong.rival = std::make_shared<Job>(test_job("twice", operands));
  EXPECT_EQ(measure_one(*runner, wrong).outcome, trial::Outcome::kWrongAnswer);
  Job right = test_job("twice", operands);
  right.rival = std::make_shared<Job>(test_job("nothing", operands));
  EXPECT_EQ(measure_one(*runner, right).outcome, trial::Outcome::kLoad);
}

TEST(runner, cold_weights_cost_more_than_warm_ones) {
  const auto runner = local();
  Job job = test_job("sums_constants", test_operands(1 << 16));
  job.executable.entries[0].num_tiles = 1;
  job.tolerance = 0;
  // Neighbours on a shared machine may keep its caches busy for a while: the least times count.
  double least[2] = {HUGE_VAL, HUGE_VAL}, ratio = 0;
  for (int attempt = 0; attempt < 40 && ratio < 1.2; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    for (const Weights weights : {Weights::kWarm, Weights::kMemory}) {
      job.weights = weights;
      const Measurement m = measure_one(*runner, job);
      ASSERT_EQ(m.outcome, trial::Outcome::kOk) << m.message;
      double& seconds = least[weights == Weights::kMemory];
      seconds =
          std::min(seconds, *std::min_element(m.timing.samples.begin(), m.timing.samples.end()));
    }
    ratio = least[1] / least[0];
  }
  EXPECT_GT(ratio, 1.2);
}

TEST(runner, sweeping_the_own_caches_changes_no_result) {
  const auto runner = local();
  Job job = test_job("twice", test_operands());
  job.weights = Weights::kShared;
  job.own_cache_bytes = 1 << 20;
  job.threads = 2;
  const Measurement swept = measure_one(*runner, job);
  EXPECT_EQ(swept.outcome, trial::Outcome::kOk) << swept.message;
  EXPECT_TRUE(swept.verified);
  EXPECT_GT(swept.timing.centre, 0);
}

TEST(runner, many_operand_sets_take_turns) {
  const auto runner = local();
  std::vector<std::shared_ptr<const Operands>> sets;
  for (int i = 0; i < 7; ++i) sets.push_back(test_operands());
  std::vector<Job> batch;
  for (uint64_t i = 0; i < 21; ++i) batch.push_back(test_job("twice", sets[i % sets.size()], i));
  ASSERT_TRUE(runner->submit(std::move(batch)).ok());
  const auto all = runner->collect();
  ASSERT_EQ(all->size(), 21U);
  for (uint64_t i = 0; i < 21; ++i) {
    EXPECT_EQ((*all)[i].id, i);
    EXPECT_EQ((*all)[i].outcome, trial::Outcome::kOk) << (*all)[i].message;
  }
}

TEST(runner, cancel_returns_what_is_done_and_the_next_batch_runs) {
  const auto runner = local();
  const auto operands = test_operands();
  Job hang = test_job("hangs", operands, 2);
  hang.timeout_seconds = 60;
  ASSERT_TRUE(
      runner->submit({test_job("twice", operands, 1), hang, test_job("twice", operands, 3)}).ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const auto start = std::chrono::steady_clock::now();
  runner->cancel();
  const auto all = runner->collect();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), 1U);
  EXPECT_EQ(all->front().id, 1U);
  EXPECT_EQ(measure_one(*runner, test_job("twice", operands)).outcome, trial::Outcome::kOk);
}

TEST(runner, a_worker_that_cannot_start_is_one_error) {
  const auto missing = make_local_runner({.executable = "/nonexistent/hone"});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().message(),
            "cannot measure: there is no worker program at /nonexistent/hone; HONE_WORKER may name "
            "another");
  const auto other = make_local_runner({.executable = "/bin/false"});
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.status().message(),
            "worker /bin/false did not start: the worker ended with status 1");
  const auto silent = make_local_runner(
      {.executable = "/bin/sh", .arguments = {"-c", "sleep 60"}, .start_seconds = 0.1});
  ASSERT_FALSE(silent.ok());
  EXPECT_EQ(silent.status().message(), "worker /bin/sh did not start: it did not say hello");
}

// Returns a shell's command that writes a message to a worker's socket.
std::string shell_sends(MessageType type, const std::string& body) {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  EXPECT_TRUE(send_message(ends[0], type, body).ok());
  close(ends[0]);
  std::string command = "printf '";
  for (unsigned char byte = 0; read(ends[1], &byte, 1) == 1;)
    command += fmt::format("\\{:03o}", byte);
  close(ends[1]);
  return command + "' >&3; ";
}

TEST(runner, a_worker_that_answers_a_crash_is_used_no_more) {
  Job job;
  job.id = 9;
  const std::string lost = encode(failed(job.id, trial::Outcome::kCrash, "the device is lost"));
  const std::string script = shell_sends(MessageType::kHello, "") + "head -c 1 <&3 >/dev/null; " +
                             shell_sends(MessageType::kResult, lost) + "sleep 60";
  const auto worker = WorkerProcess::start({.executable = "/bin/sh", .arguments = {"-c", script}});
  ASSERT_TRUE(worker.ok()) << worker.status().message();
  const Measurement m = (*worker)->run(job);
  EXPECT_EQ(m.outcome, trial::Outcome::kCrash);
  EXPECT_EQ(m.message, "the device is lost");
  EXPECT_FALSE((*worker)->alive());
  EXPECT_FALSE((*worker)->was_killed()) << "the job would be run again";
}

TEST(runner, a_worker_says_why_it_cannot_measure) {
  const auto runner = make_local_runner(
      {.executable = "/bin/sh",
       .arguments = {"-c", shell_sends(MessageType::kHello, "there is no driver")}});
  ASSERT_FALSE(runner.ok());
  EXPECT_EQ(runner.status().message(), "no worker can measure: there is no driver");
}

TEST(runner, what_a_worker_started_dies_with_it) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  // The shell's child holds the other end of the pipe, as it would the tuner's stderr.
  const std::string script =
      "sleep 60 > /proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(ends[1]) + " & wait";
  const auto runner = make_local_runner(
      {.executable = "/bin/sh", .arguments = {"-c", script}, .start_seconds = 0.3});
  EXPECT_FALSE(runner.ok());
  close(ends[1]);
  pollfd closed = {.fd = ends[0], .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&closed, 1, 10'000), 1) << "the child of the worker lives on";
  close(ends[0]);
}

}  // namespace
}  // namespace hone::measure
