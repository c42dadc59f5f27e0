#include "hone/measure/counters.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <time.h>

#include <atomic>
#include <thread>

#include "hone/measure/software_events_testing.h"

namespace hone::measure {
namespace {

using Counts = std::vector<double>;

TEST(add_up, groups_that_shared_the_counters_are_scaled) {
  const GroupCounts whole = {.enabled = 100, .running = 100, .counts = {10, 7}};
  const GroupCounts half = {.enabled = 100, .running = 50, .counts = {10, 2}};
  const GroupCounts asleep = {.enabled = 0, .running = 0, .counts = {0, 0}};
  const GroupCounts never = {.enabled = 100, .running = 0, .counts = {0, 0}};
  EXPECT_EQ(add_up(std::vector{whole}), (Counts{10, 7}));
  EXPECT_EQ(add_up(std::vector{whole, half}), (Counts{30, 11}));
  EXPECT_EQ(add_up(std::vector{asleep, half}), (Counts{20, 4}));
  EXPECT_EQ(add_up(std::vector{whole, never}), std::nullopt) << "a part is missing";
  EXPECT_EQ(add_up(std::vector{asleep}), std::nullopt);
  EXPECT_EQ(add_up({}), std::nullopt);
}

// Seconds of processor time that this thread has used.
double thread_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}
double work(double seconds) {
  const double begin = thread_seconds();
  while (thread_seconds() < begin + seconds) {
  }
  return thread_seconds() - begin;
}

TEST(counters, count_between_start_and_stop_only) {
  if (!may_count()) GTEST_SKIP() << "the system forbids all counting";
  const HardwareEvents& events = software_events();
  const auto counters = Counters::open(events.type, events.configs);
  ASSERT_TRUE(counters.ok()) << counters.status().message();
  work(0.01);
  EXPECT_FALSE(counters->counts().ok()) << "nothing ran while they counted";
  double counted = 0;
  for (int i = 0; i < 2; ++i) {
    counters->start();
    counted += work(0.01);
    counters->stop();
    work(0.02);
  }
  const auto counts = counters->counts();
  ASSERT_TRUE(counts.ok()) << counts.status().message();
  ASSERT_EQ(counts->size(), 2U);
  EXPECT_GE((*counts)[0] * 1e-9, counted - 1e-3);
  EXPECT_LT((*counts)[0] * 1e-9, counted + 0.02);
}

TEST(counters, count_all_threads_of_the_process) {
  if (!may_count()) GTEST_SKIP() << "the system forbids all counting";
  std::atomic<int> phase = 0;
  double theirs = 0;
  std::thread other([&] {
    phase = 1, phase.notify_all();
    phase.wait(1);
    theirs = work(0.02);
    phase = 3, phase.notify_all();
    phase.wait(3);
  });
  phase.wait(0);
  const HardwareEvents& events = software_events();
  const auto counters = Counters::open(events.type, events.configs);
  const size_t threads = counters.ok() ? counters->num_threads() : 0;
  if (counters.ok()) counters->start();
  phase = 2, phase.notify_all();
  phase.wait(2);
  if (counters.ok()) counters->stop();
  phase = 4, phase.notify_all();
  other.join();
  ASSERT_TRUE(counters.ok()) << counters.status().message();
  EXPECT_GE(threads, 2U);
  const auto counts = counters->counts();
  ASSERT_TRUE(counts.ok()) << counts.status().message();
  EXPECT_GE((*counts)[0] * 1e-9, theirs - 1e-3);
}

TEST(counters, what_the_system_does_not_open_is_an_error) {
  const uint64_t none[] = {~uint64_t{0}};
  const auto counters = Counters::open(PERF_TYPE_SOFTWARE, none);
  ASSERT_FALSE(counters.ok());
  EXPECT_EQ(counters.status().code(), Code::kUnsupported);
  EXPECT_EQ(counters.status().message().find("the system does not open the counters: "), 0U);
}

TEST(count_bounds, says_what_was_counted_and_by_which_plan) {
  if (!may_count()) GTEST_SKIP() << "the system forbids all counting";
  const auto bounds = count_bounds(software_events(), [](const Counters& counters) {
    counters.start();
    work(0.002);
    counters.stop();
  });
  ASSERT_TRUE(bounds.ok()) << bounds.status().message();
  EXPECT_EQ(bounds->source, "software");
  EXPECT_EQ(bounds->scores.memory, 0.25);
  EXPECT_EQ(bounds->scores.core, 0.5);
  EXPECT_FALSE(count_bounds(software_events(), [](const Counters&) {}).ok());
}

// Whichever this machine is: it counts, or says in one line why not.
TEST(machine_events, are_there_or_a_reason_is) {
  const Result<HardwareEvents>& events = machine_events();
  EXPECT_EQ(&events, &machine_events());
  if (events.ok()) {
    EXPECT_EQ(events->configs.size(), events->plan->events.size());
  } else {
    EXPECT_FALSE(events.status().message().empty());
    EXPECT_EQ(events.status().message().find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace hone::measure
