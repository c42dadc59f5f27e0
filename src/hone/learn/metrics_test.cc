#include "hone/learn/metrics.h"

#include <gtest/gtest.h>

#include <vector>

namespace hone::learn {
namespace {

using Values = std::vector<double>;

TEST(metrics, pair_accuracy_counts_pairs_in_order) {
  const Values measured = {1, 2, 3, 4};
  EXPECT_EQ(pair_accuracy(measured, Values{10, 20, 30, 40}), 1);
  EXPECT_EQ(pair_accuracy(measured, Values{4, 3, 2, 1}), 0);
  EXPECT_DOUBLE_EQ(pair_accuracy(measured, Values{2, 1, 3, 4}), 5.0 / 6);
}

TEST(metrics, pair_accuracy_of_ties) {
  EXPECT_EQ(pair_accuracy(Values{1, 2, 3}, Values{7, 7, 7}), 0.5);
  // Equal measurements have no order to predict.
  EXPECT_EQ(pair_accuracy(Values{1, 1, 2}, Values{5, 3, 9}), 1);
  EXPECT_EQ(pair_accuracy(Values{1}, Values{1}), 1);
}

TEST(metrics, pair_accuracy_of_clear_pairs) {
  const Values measured = {100, 103, 200}, predicted = {2, 1, 3};
  EXPECT_DOUBLE_EQ(pair_accuracy(measured, predicted), 2.0 / 3);
  EXPECT_EQ(pair_accuracy(measured, predicted, 1.05), 1);
  EXPECT_EQ(pair_accuracy(measured, predicted, 10), 1);
}

TEST(metrics, top_score_is_what_k_measurements_reach) {
  const Values measured = {4, 2, 1, 8}, predicted = {1, 2, 3, 4};
  EXPECT_DOUBLE_EQ(top_score(measured, predicted, 1), 0.25);
  EXPECT_DOUBLE_EQ(top_score(measured, predicted, 2), 0.5);
  EXPECT_DOUBLE_EQ(top_score(measured, predicted, 3), 1);
  EXPECT_DOUBLE_EQ(top_score(measured, predicted, 100), 1);
}

TEST(metrics, top_score_gains_nothing_from_ties) {
  EXPECT_DOUBLE_EQ(top_score(Values{1, 5}, Values{3, 3}, 1), 0.2);
}

TEST(metrics, peak_score_is_the_mean_of_top_scores) {
  const Values measured = {4, 2, 1, 8}, predicted = {1, 2, 3, 4};
  EXPECT_DOUBLE_EQ(peak_score(measured, predicted, 1), 0.25);
  EXPECT_DOUBLE_EQ(peak_score(measured, predicted, 4), (0.25 + 0.5 + 1 + 1) / 4);
}

TEST(metrics, sum_score_is_a_ratio_of_sums) {
  const Values measured = {4, 2, 1, 8}, predicted = {1, 2, 3, 4};
  EXPECT_DOUBLE_EQ(sum_score(measured, predicted, 1), 1.0 / 4);
  EXPECT_DOUBLE_EQ(sum_score(measured, predicted, 2), (1.0 + 2) / (4 + 2));
  EXPECT_DOUBLE_EQ(sum_score(measured, predicted, 4), 1);
}

TEST(metrics, squared_error_is_a_mean) {
  EXPECT_DOUBLE_EQ(squared_error(Values{1, 2}, Values{1, 4}), 2);
}

TEST(metrics, r_squared_compares_with_the_mean) {
  const Values actual = {1, 2, 3};
  EXPECT_DOUBLE_EQ(r_squared(actual, actual), 1);
  EXPECT_DOUBLE_EQ(r_squared(actual, Values{2, 2, 2}), 0);
  EXPECT_DOUBLE_EQ(r_squared(actual, Values{3, 2, 1}), -3);
  EXPECT_EQ(r_squared(Values{2, 2}, Values{1, 3}), 0);
}

TEST(metrics, determination_of_parts_is_that_of_all) {
  const Values actual = {1, 2, 3, 1000, 1001}, predicted = {2, 2, 2, 1000, 1003};
  for (size_t cut = 0; cut <= actual.size(); ++cut) {
    Determination first, second;
    for (size_t i = 0; i < actual.size(); ++i)
      (i < cut ? first : second).add(actual[i], predicted[i]);
    first.add(second);
    EXPECT_NEAR(first.r_squared(), r_squared(actual, predicted), 1e-15);
  }
  EXPECT_EQ(Determination().r_squared(), 0);
}

}  // namespace
}  // namespace hone::learn
