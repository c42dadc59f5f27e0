// Noise promotes no losers: hundreds of simulated searches on a machine that drifts, is
// interrupted and has bad moments.
#include "hone/search/incumbent.h"

#include <gtest/gtest.h>

#include <string>

#include "hone/search/noisy_runner_testing.h"

namespace hone::search {
namespace {

constexpr int kSeeds = 300, kCandidates = 100;

double label_seconds(const measure::Job& job) { return std::stod(job.label); }

measure::Job job_of(uint64_t id, double seconds) {
  measure::Job job;
  job.id = id;
  job.label = fmt::format("{}", seconds);
  return job;
}

struct Search {
  ManualClock clock;
  NoisyRunner runner;
  Rng rng;
  explicit Search(uint64_t seed, const Noise& noise = {})
      : runner(seed, clock, label_seconds, noise), rng(seed + 1000) {}
  void start_anywhere() { clock.advance(60 * rng.uniform()); }

  double measured(const measure::Job& job) {
    EXPECT_TRUE(runner.submit({job}).ok());
    return runner.collect()->front().timing.centre;
  }
  // The candidates are slower than the first by 1 to 30%. With `careful` as the tuner does it;
  // else the least time wins, as it is measured. How much slower what wins is.
  double slower_than_the_best(bool careful) {
    const double best = 1e-4;
    start_anywhere();
    const measure::Job first = job_of(0, best);
    Incumbent incumbent;
    incumbent.install(first, measured(first), 0, clock.now_seconds());
    measure::Job naive = first;
    double least = incumbent.seconds();
    for (uint64_t i = 1; i <= kCandidates; ++i) {
      measure::Job job = job_of(i, best * (1.01 + 0.29 * rng.uniform()));
      if (careful) {
        EXPECT_TRUE(incumbent.refresh(runner, clock).ok());
      }
      job.timing.best = careful ? incumbent.seconds_now() : least;
      const double time = measured(job);
      incumbent.count(1);
      if (!careful) {
        if (time < least) least = time, naive = job;
      } else if (time / incumbent.drift() < incumbent.seconds()) {
        EXPECT_TRUE(incumbent.challenge(job, runner).ok());
      }
    }
    return label_seconds(careful ? incumbent.job() : naive) / best - 1;
  }
};

TEST(incumbent, noise_promotes_no_loser) {
  int careful = 0, naive = 0, duels = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Search search(seed);
    careful += search.slower_than_the_best(true) > 0 ? 1 : 0;
    duels += search.runner.duels();
    naive += Search(seed).slower_than_the_best(false) > 0 ? 1 : 0;
  }
  // In whole searches of 100 candidates each, not in single comparisons.
  EXPECT_LE(careful, kSeeds * 5 / 100);
  EXPECT_GE(naive, kSeeds / 3) << "this noise would not fool the least of all times either";
  EXPECT_GT(duels, kSeeds) << "nobody ever seemed faster";
  RecordProperty("losers_promoted", careful);
  RecordProperty("losers_promoted_without_duels", naive);
}

// Each of them wins a duel now and then: were it promoted, the scale would fall by a percent or
// two.
TEST(incumbent, thousands_of_equals_leave_the_scale_as_it_is) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Search search(seed);
    Incumbent incumbent;
    incumbent.install(job_of(0, 1e-4), 1e-4, 0, search.clock.now_seconds());
    for (uint64_t i = 1; i <= 2000; ++i)
      ASSERT_TRUE(incumbent.challenge(job_of(i, 1e-4), search.runner).ok());
    EXPECT_GT(incumbent.seconds(), 0.95e-4) << seed;
  }
}

// Where memory lies favours one code for some seconds. Who wins by that must not make all that is
// measured later seem faster.
TEST(incumbent, luck_with_memory_does_not_add_up) {
  double least = INFINITY, most = 0, promoted = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Search search(seed, {.interruptions = 0, .drift = 0, .burst_every = 1e9, .memory = 0.15});
    Incumbent incumbent;
    const measure::Job first = job_of(0, 1e-4);
    incumbent.install(first, search.measured(first), 0, search.clock.now_seconds());
    for (uint64_t i = 1; i <= 3000; ++i) {
      ASSERT_TRUE(incumbent.refresh(search.runner, search.clock).ok());
      const measure::Job job = job_of(i, 1e-4 * (1 + 0.1 * search.rng.uniform()));
      const double time = search.measured(job) / incumbent.drift();
      incumbent.count(1);
      if (time >= incumbent.to_beat()) continue;
      const auto challenge = incumbent.challenge(job, search.runner);
      ASSERT_TRUE(challenge.ok());
      promoted += challenge->verdict == trial::Verdict::kFaster;
    }
    least = std::min(least, incumbent.seconds()), most = std::max(most, incumbent.drift());
  }
  RecordProperty("promoted", fmt::format("{}", promoted));
  RecordProperty("least", fmt::format("{:.3g}", least));
  RecordProperty("most", fmt::format("{:.3g}", most));
  EXPECT_GT(least, 0.9e-4);
  EXPECT_LT(most, 1.1);
}

TEST(incumbent, a_faster_challenger_wins_all_the_same) {
  int won = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Search search(seed);
    const measure::Job slow = job_of(1, 1e-4), fast = job_of(2, 0.93e-4);
    Incumbent incumbent;
    incumbent.install(slow, search.measured(slow), 0, search.clock.now_seconds());
    const auto challenge = incumbent.challenge(fast, search.runner);
    ASSERT_TRUE(challenge.ok());
    if (challenge->verdict != trial::Verdict::kFaster) {
      EXPECT_GT(challenge->seconds, incumbent.seconds());
      continue;
    }
    ++won;
    EXPECT_EQ(incumbent.job().id, 2U);
    EXPECT_EQ(incumbent.seconds(), challenge->seconds);
  }
  EXPECT_GE(won, kSeeds * 95 / 100);
}

TEST(incumbent, the_drift_of_the_machine_is_divided_out) {
  // Nothing but a drift: after it the candidates of the same speed read 30% slower.
  Noise noise{.jitter = 0.002, .interruptions = 0, .burst_every = 1e9};
  Search search(1, noise);
  const measure::Job first = job_of(1, 1e-4);
  Incumbent incumbent;
  incumbent.install(first, search.measured(first), 0, search.clock.now_seconds());
  EXPECT_FALSE(incumbent.due(search.clock.now_seconds()));
  search.clock.advance(noise.drift_period / 2 - search.clock.now_seconds());
  ASSERT_TRUE(incumbent.due(search.clock.now_seconds())) << "it was long ago";
  ASSERT_TRUE(incumbent.refresh(search.runner, search.clock).ok());
  EXPECT_NEAR(incumbent.drift(), 1.3, 0.02);
  EXPECT_NEAR(incumbent.slowdown(), 1.3, 0.02);
  EXPECT_NEAR(search.measured(job_of(2, 1.1e-4)) / incumbent.drift(), 1.1e-4, 0.02e-4);
  EXPECT_NEAR(incumbent.seconds_now(), 1.3e-4, 0.03e-4);
  EXPECT_FALSE(incumbent.due(search.clock.now_seconds()));
  incumbent.count(16);
  EXPECT_TRUE(incumbent.due(search.clock.now_seconds())) << "many were measured since";
}

TEST(incumbent, a_stored_time_is_the_scale) {
  Search search(3, {.jitter = 0.002, .interruptions = 0, .drift = 0, .burst_every = 1e9});
  Incumbent incumbent;
  const measure::Job stored = job_of(1, 1.25e-4);
  incumbent.install(stored, search.measured(stored), 1e-4, 0);
  EXPECT_EQ(incumbent.seconds(), 1e-4);
  EXPECT_NEAR(incumbent.drift(), 1.25, 0.02);
  EXPECT_NEAR(incumbent.slowdown(), 1, 0.02);
  const auto won = incumbent.challenge(job_of(2, 1e-4), search.runner);
  ASSERT_TRUE(won.ok());
  EXPECT_EQ(won->verdict, trial::Verdict::kFaster);
  EXPECT_NEAR(incumbent.seconds(), 0.8e-4, 0.01e-4);
}

TEST(incumbent, a_disturbed_first_time_is_known_once_the_machine_is_quiet) {
  Search search(3, {.jitter = 0.002, .interruptions = 0, .drift = 0, .burst_every = 1e9});
  Incumbent incumbent;
  const measure::Job first = job_of(1, 1e-4);
  incumbent.install(first, 3e-4, 0, 0);
  EXPECT_EQ(incumbent.seconds() * incumbent.least_drift(), 3e-4);
  search.clock.advance(10);
  ASSERT_TRUE(incumbent.refresh(search.runner, search.clock).ok());
  EXPECT_EQ(incumbent.seconds(), 3e-4) << "what is stored stays comparable";
  EXPECT_NEAR(incumbent.seconds() * incumbent.least_drift(), 1e-4, 0.02e-4);
  // Disturbed again, it is still known.
  incumbent.install(first, 5e-4, 1e-4, 20);
  EXPECT_EQ(incumbent.seconds() * incumbent.least_drift(), 1e-4);
}

TEST(incumbent, a_clock_that_jumps_back_makes_it_due_and_no_worse) {
  const measure::Job first = job_of(1, 1e-4);
  Incumbent incumbent;
  incumbent.install(first, 1e-4, 0, 1000);
  EXPECT_TRUE(incumbent.due(5));
  EXPECT_FALSE(incumbent.due(1001));
}

}  // namespace
}  // namespace hone::search
