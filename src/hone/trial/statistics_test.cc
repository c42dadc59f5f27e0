#include "hone/trial/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "hone/base/rng.h"

namespace hone::trial {
namespace {

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
    for (int j = 0; j < 100; ++j) test.add(std::exp(rng.normal()), std::exp(rng.normal()));
    first += test.first_is_faster() ? 1 : 0, second += test.second_is_faster() ? 1 : 0;
  }
  EXPECT_LE(first, rounds * 5 / 100);
  EXPECT_LE(second, rounds * 5 / 100);
  EXPECT_GT(first + second, 0) << "never deciding would be no test";
}

}  // namespace
}  // namespace hone::trial
