#include "hone/measure/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "hone/base/rng.h"
#include "hone/measure/timing.h"

namespace hone::measure {
namespace {

// A run time as a busy machine gives it: small jitter, now and then an interruption, never faster.
double noisy(Rng& rng, double seconds) {
  const double jitter = 1 + 0.01 * std::abs(rng.normal());
  const double interruption = rng.chance(0.05) ? 1 + 4 * rng.uniform() : 1;
  return seconds * jitter * interruption;
}

TEST(statistics, median_of_odd_and_even_counts) {
  EXPECT_EQ(median(std::vector{3.0}), 3.0);
  EXPECT_EQ(median(std::vector{3.0, 1.0, 2.0}), 2.0);
  EXPECT_EQ(median(std::vector{4.0, 1.0, 3.0, 2.0}), 2.5);
}

TEST(statistics, centre_ignores_the_extremes) {
  EXPECT_EQ(robust_centre(std::vector{1.0, 2.0, 1000.0}), 2.0);
  EXPECT_EQ(robust_centre(std::vector{0.0, 2.0, 3.0, 1000.0}), 2.5);
  EXPECT_EQ(robust_centre(std::vector{0.0, 0.1, 2.0, 3.0, 4.0, 5.0, 900.0, 1000.0}), 3.5);
}

TEST(statistics, interval_is_the_range_of_few_samples_and_tightens) {
  const auto few = median_interval(std::vector{5.0, 1.0, 2.0, 4.0, 3.0});
  EXPECT_EQ(few.low, 1.0);
  EXPECT_EQ(few.high, 5.0);
  std::vector<double> many;
  for (int i = 1; i <= 20; ++i) many.push_back(i);
  // The 6th and 15th of 20: coverage 95.9% (any table of the sign test).
  EXPECT_EQ(median_interval(many).low, 6.0);
  EXPECT_EQ(median_interval(many).high, 15.0);
}

TEST(statistics, interval_covers_the_true_median_as_often_as_it_says) {
  Rng rng(11);
  int covered = 0;
  const int rounds = 4000;
  for (int i = 0; i < rounds; ++i) {
    std::vector<double> samples;
    for (int j = 0; j < 15; ++j) samples.push_back(std::exp(rng.normal()));  // median 1, skewed
    const Interval interval = median_interval(samples);
    covered += interval.low <= 1 && 1 <= interval.high ? 1 : 0;
  }
  EXPECT_GE(covered, rounds * 94 / 100);
}

TEST(slower_test, needs_five_samples_above_and_forgives_one_below) {
  SlowerTest plain(1.0);
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(plain.add(2.0));
  EXPECT_TRUE(plain.add(2.0));
  SlowerTest mixed(1.0);
  EXPECT_FALSE(mixed.add(0.5));
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(mixed.add(2.0)) << i;
  EXPECT_TRUE(mixed.add(2.0));
}

TEST(slower_test, rarely_condemns_a_time_that_is_not_slower) {
  Rng rng(12);
  int condemned = 0;
  const int rounds = 4000;
  for (int i = 0; i < rounds; ++i) {
    SlowerTest test(1.0);
    bool slower = false;
    for (int j = 0; j < 40; ++j) slower = test.add(std::exp(0.1 * rng.normal()));
    condemned += slower ? 1 : 0;
  }
  EXPECT_LE(condemned, rounds * 5 / 100);
}

TEST(pair_test, six_wins_in_a_row_decide) {
  PairTest test;
  for (int i = 0; i < 5; ++i) test.add(1, 2);
  EXPECT_FALSE(test.decided());
  test.add(1, 2);
  EXPECT_TRUE(test.first_is_faster());
  PairTest lost;
  for (int i = 0; i < 6; ++i) lost.add(2, 1);
  EXPECT_TRUE(lost.second_is_faster());
  PairTest equal;
  for (int i = 0; i < 50; ++i) equal.add(1, 1);
  EXPECT_FALSE(equal.decided());
}

TEST(pair_test, equal_times_are_rarely_told_apart_wherever_one_stops) {
  Rng rng(14);
  const int rounds = 4000;
  int first = 0, second = 0;
  for (int i = 0; i < rounds; ++i) {
    PairTest test;
    for (int j = 0; j < 100; ++j) test.add(noisy(rng, 1), noisy(rng, 1));
    first += test.first_is_faster() ? 1 : 0, second += test.second_is_faster() ? 1 : 0;
  }
  EXPECT_LE(first, rounds * 5 / 100);
  EXPECT_LE(second, rounds * 5 / 100);
  EXPECT_GT(first + second, 0) << "never deciding would be no test";
}

struct FakeKernel {
  double seconds;
  Rng rng{5};
  int64_t runs = 0;
  double operator()(int64_t n) {
    runs += n;
    double total = 0;
    for (int64_t i = 0; i < n; ++i) total += noisy(rng, seconds);
    return total;
  }
};

TEST(timing, finds_the_time_of_a_noisy_kernel) {
  for (const double seconds : {3e-6, 1e-4, 5e-3, 5e-2}) {
    FakeKernel kernel{seconds};
    const Timing t = time_adaptively(std::ref(kernel), {});
    EXPECT_NEAR(t.centre / seconds, 1.0, 0.2) << seconds;
    EXPECT_LE(t.low, t.centre);
    EXPECT_GE(t.high, t.centre);
    EXPECT_FALSE(t.stopped_early);
    EXPECT_EQ(t.runs, kernel.runs);
  }
}

TEST(timing, a_sample_has_fewer_runs_where_much_happens_between_them) {
  const auto runs_of_a_sample = [](double between) {
    FakeKernel kernel{1e-6};
    std::vector<int64_t> counts;
    const auto run = [&](int64_t n) {
      counts.push_back(n);
      return kernel(n);
    };
    (void)time_adaptively(run, {.sample_seconds = 1e-4}, between);
    return counts.back();
  };
  EXPECT_GT(runs_of_a_sample(0), 50);
  EXPECT_EQ(runs_of_a_sample(1e-7), runs_of_a_sample(0));
  EXPECT_EQ(runs_of_a_sample(4e-5), 10);  // 400 us in all
  EXPECT_EQ(runs_of_a_sample(1e-2), 4);
}

TEST(timing, a_clearly_slower_candidate_runs_once_or_twice) {
  FakeKernel hopeless{1e-2};
  const Timing a = time_adaptively(std::ref(hopeless), {.best = 1e-3});
  EXPECT_TRUE(a.stopped_early);
  EXPECT_EQ(a.runs, 1);
  FakeKernel slow{2e-3};
  const Timing b = time_adaptively(std::ref(slow), {.best = 1e-3});
  EXPECT_TRUE(b.stopped_early);
  EXPECT_EQ(b.runs, 2);
}

TEST(timing, a_slow_first_run_alone_does_not_condemn) {
  int calls = 0;
  const Timing t = time_adaptively(
      [&](int64_t n) { return (calls++ == 0 ? 3e-3 : 1e-3) * static_cast<double>(n); },
      {.best = 1.1e-3});
  EXPECT_FALSE(t.stopped_early);
  EXPECT_NEAR(t.centre, 1e-3, 1e-9);
}

TEST(timing, a_slightly_slower_candidate_stops_after_few_samples) {
  FakeKernel kernel{1.2e-3};
  const Timing t =
      time_adaptively(std::ref(kernel), {.precision = 0, .max_seconds = 10, .best = 1e-3});
  EXPECT_TRUE(t.stopped_early);
  EXPECT_LE(t.samples.size(), 8U);
}

TEST(timing, respects_the_caps) {
  FakeKernel kernel{1e-2};
  const Timing by_time = time_adaptively(std::ref(kernel), {.precision = 0, .max_seconds = 0.1});
  EXPECT_LE(by_time.runs, 12);
  const Timing by_count =
      time_adaptively(std::ref(kernel), {.max_samples = 7, .precision = 0, .max_seconds = 1e9});
  EXPECT_EQ(by_count.samples.size(), 7U);
}

TEST(duel, finds_which_is_faster_under_drift_and_interruptions) {
  double load = 1;  // both run 0.5% slower from sample to sample
  const auto kernel = [&](double seconds, Rng& rng) {
    return [&load, &rng, seconds](int64_t n) {
      load *= 1.005;
      return load * noisy(rng, seconds * static_cast<double>(n));
    };
  };
  Rng rng(15);
  int faster = 0, slower = 0;
  for (int round = 0; round < 200; ++round) {
    load = 1;
    faster += judge(duel(kernel(0.95e-3, rng), kernel(1e-3, rng), {})) == Verdict::kFaster;
    slower += judge(duel(kernel(1.05e-3, rng), kernel(1e-3, rng), {})) == Verdict::kSlower;
  }
  EXPECT_GE(faster, 195);
  EXPECT_GE(slower, 195);
}

TEST(duel, slow_runs_are_few) {
  FakeKernel fast{0.1}, slow{0.2};
  const Duel clear = duel(std::ref(fast), std::ref(slow), {});
  EXPECT_EQ(judge(clear), Verdict::kFaster);
  EXPECT_LE(clear.pairs(), 7U);
  EXPECT_LE(fast.runs, 8);
  FakeKernel endless{10}, other{10};
  EXPECT_EQ(duel(std::ref(endless), std::ref(other), {}).pairs(), 1U);
  // Three pairs that differ little say nothing.
  EXPECT_EQ(judge({{0.9, 0.9, 0.9}, {1, 1, 1}}), Verdict::kUndecided);
  EXPECT_EQ(judge({{0.5, 0.5, 0.5}, {1, 1, 1}}), Verdict::kFaster);
  EXPECT_EQ(judge({{0.5e-6, 0.5e-6, 0.5e-6}, {1e-6, 1e-6, 1e-6}}), Verdict::kUndecided);
}

TEST(timing, short_kernels_are_repeated_within_a_sample) {
  FakeKernel kernel{1e-6};
  const Timing t = time_adaptively(std::ref(kernel), {});
  EXPECT_GE(t.runs, 5 * 200);
}

}  // namespace
}  // namespace hone::measure
