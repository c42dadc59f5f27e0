#include "hone/base/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace hone {
namespace {

TEST(rng, same_seed_same_sequence) {
  Rng a(7);
  Rng b(7);
  Rng c(8);
  int equal_to_other = 0;
  for (int i = 0; i < 100; ++i) {
    const uint64_t x = a.next();
    EXPECT_EQ(x, b.next());
    equal_to_other += x == c.next();
  }
  EXPECT_EQ(equal_to_other, 0);
}

TEST(rng, ranges_are_covered_evenly) {
  Rng rng(1);
  std::vector<int> count(7, 0);
  for (int i = 0; i < 70'000; ++i) ++count[static_cast<size_t>(rng.between(-3, 3) + 3)];
  for (const int n : count) EXPECT_NEAR(n, 10'000, 500);  // five standard deviations
}

TEST(rng, uniform_and_normal_have_their_moments) {
  Rng rng(2);
  constexpr int kSamples = 100'000;
  double sum = 0;
  double normal_sum = 0;
  double normal_squares = 0;
  for (int i = 0; i < kSamples; ++i) {
    const double u = rng.uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    const double z = rng.normal();
    ASSERT_TRUE(std::isfinite(z));
    normal_sum += z, normal_squares += z * z;
  }
  EXPECT_NEAR(sum / kSamples, 0.5, 0.005);
  EXPECT_NEAR(normal_sum / kSamples, 0, 0.02);
  EXPECT_NEAR(normal_squares / kSamples, 1, 0.03);
}

TEST(rng, shuffle_permutes) {
  Rng rng(3);
  std::vector<int> items(50);
  for (int i = 0; i < 50; ++i) items[static_cast<size_t>(i)] = i;
  std::vector<int> shuffled = items;
  rng.shuffle(shuffled);
  EXPECT_NE(shuffled, items);
  std::sort(shuffled.begin(), shuffled.end());
  EXPECT_EQ(shuffled, items);
}

}  // namespace
}  // namespace hone
