#include "hone/measure/timing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "hone/base/rng.h"

namespace hone::measure {
namespace {

// A run time as a busy machine gives it: small jitter, now and then an interruption, never faster.
double noisy(Rng& rng, double seconds) {
  const double jitter = 1 + 0.01 * std::abs(rng.normal());
  const double interruption = rng.chance(0.05) ? 1 + 4 * rng.uniform() : 1;
  return seconds * jitter * interruption;
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
    const trial::Timing t = time_adaptively(std::ref(kernel), {});
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
  const trial::Timing a = time_adaptively(std::ref(hopeless), {.best = 1e-3});
  EXPECT_TRUE(a.stopped_early);
  EXPECT_EQ(a.runs, 1);
  FakeKernel slow{2e-3};
  const trial::Timing b = time_adaptively(std::ref(slow), {.best = 1e-3});
  EXPECT_TRUE(b.stopped_early);
  EXPECT_EQ(b.runs, 2);
}

TEST(timing, a_slow_first_run_alone_does_not_condemn) {
  int calls = 0;
  const trial::Timing t = time_adaptively(
      [&](int64_t n) { return (calls++ == 0 ? 3e-3 : 1e-3) * static_cast<double>(n); },
      {.best = 1.1e-3});
  EXPECT_FALSE(t.stopped_early);
  EXPECT_NEAR(t.centre, 1e-3, 1e-9);
}

TEST(timing, a_slightly_slower_candidate_stops_after_few_samples) {
  FakeKernel kernel{1.2e-3};
  const trial::Timing t =
      time_adaptively(std::ref(kernel), {.precision = 0, .max_seconds = 10, .best = 1e-3});
  EXPECT_TRUE(t.stopped_early);
  EXPECT_LE(t.samples.size(), 8U);
}

TEST(timing, respects_the_caps) {
  FakeKernel kernel{1e-2};
  const trial::Timing by_time =
      time_adaptively(std::ref(kernel), {.precision = 0, .max_seconds = 0.1});
  EXPECT_LE(by_time.runs, 12);
  const trial::Timing by_count =
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
    faster += judge(duel(kernel(0.95e-3, rng), kernel(1e-3, rng), {})) == trial::Verdict::kFaster;
    slower += judge(duel(kernel(1.05e-3, rng), kernel(1e-3, rng), {})) == trial::Verdict::kSlower;
  }
  EXPECT_GE(faster, 195);
  EXPECT_GE(slower, 195);
}

TEST(duel, slow_runs_are_few) {
  FakeKernel fast{0.1}, slow{0.2};
  const trial::Duel clear = duel(std::ref(fast), std::ref(slow), {});
  EXPECT_EQ(judge(clear), trial::Verdict::kFaster);
  EXPECT_LE(clear.pairs(), 7U);
  EXPECT_LE(fast.runs, 8);
  FakeKernel endless{10}, other{10};
  EXPECT_EQ(duel(std::ref(endless), std::ref(other), {}).pairs(), 1U);
}

TEST(timing, short_kernels_are_repeated_within_a_sample) {
  FakeKernel kernel{1e-6};
  const trial::Timing t = time_adaptively(std::ref(kernel), {});
  EXPECT_GE(t.runs, 5 * 200);
}

}  // namespace
}  // namespace hone::measure
