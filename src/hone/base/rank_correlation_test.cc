#include "hone/base/rank_correlation.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hone {
namespace {

TEST(spearman, is_the_correlation_of_ranks) {
  const std::vector<float> a = {1, 2, 3, 4, 5};
  EXPECT_NEAR(spearman(a, std::vector<float>{2, 4, 8, 16, 1000}), 1, 1e-6);
  EXPECT_NEAR(spearman(a, std::vector<float>{5, 4, 3, 2, 1}), -1, 1e-6);
  // 1 - 6 * (0 + 1 + 1 + 1 + 1) / (5 * 24)
  EXPECT_NEAR(spearman(a, std::vector<float>{1, 3, 2, 5, 4}), 0.8, 1e-6);
  // Ranks 1.5 1.5 3 4 5: the product of deviations is 9.5, the squares sum to 9.5 and 10.
  EXPECT_NEAR(spearman(a, std::vector<float>{0, 0, 1, 2, 3}), std::sqrt(9.5 / 10), 1e-6);
  EXPECT_EQ(spearman(a, std::vector<float>{7, 7, 7, 7, 7}), 0);
}

}  // namespace
}  // namespace hone
