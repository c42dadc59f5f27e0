#include "hone/trial/timing.h"

#include <gtest/gtest.h>

namespace hone::trial {
namespace {

TEST(timing, its_centre_and_interval_are_those_of_its_samples) {
  Timing timing{.samples = {5, 1, 2, 4, 3}};
  summarise(timing);
  EXPECT_EQ(timing.centre, 3);
  EXPECT_EQ(timing.low, 1);
  EXPECT_EQ(timing.high, 5);
}

TEST(judge, six_pairs_in_a_row_decide) {
  EXPECT_EQ(judge({{1e-6, 1e-6, 1e-6, 1e-6, 1e-6}, {2e-6, 2e-6, 2e-6, 2e-6, 2e-6}}),
            Verdict::kUndecided);
  const std::vector<double> fast(6, 1e-6), slow(6, 2e-6);
  EXPECT_EQ(judge({fast, slow}), Verdict::kFaster);
  EXPECT_EQ(judge({slow, fast}), Verdict::kSlower);
}

TEST(judge, three_slow_pairs_are_enough_if_they_differ_much) {
  EXPECT_EQ(judge({{0.9, 0.9, 0.9}, {1, 1, 1}}), Verdict::kUndecided);
  EXPECT_EQ(judge({{0.5, 0.5, 0.5}, {1, 1, 1}}), Verdict::kFaster);
  EXPECT_EQ(judge({{0.5e-6, 0.5e-6, 0.5e-6}, {1e-6, 1e-6, 1e-6}}), Verdict::kUndecided);
}

TEST(duel_ratio, is_the_median_over_pairs) {
  EXPECT_DOUBLE_EQ(duel_ratio({{1, 2, 30}, {2, 2, 3}}), 1);
}

}  // namespace
}  // namespace hone::trial
