#include "hone/search/convergence.h"

#include <gtest/gtest.h>

namespace hone::search {
namespace {

TEST(convergence, comes_after_measurements_without_a_gain_of_a_percent) {
  Convergence convergence(2, 20);
  EXPECT_FALSE(convergence.add(0, 8, 1.0));
  EXPECT_FALSE(convergence.add(0, 8, 0.995));  // too little to count
  EXPECT_FALSE(convergence.add(0, 8, 0.98));   // a gain: counted anew
  EXPECT_FALSE(convergence.add(0, 19, 0.98));
  EXPECT_FALSE(convergence.add(1, 8, 2.0));  // another task's measurements
  EXPECT_TRUE(convergence.add(0, 1, 0.98));
}

TEST(convergence, small_gains_add_up) {
  Convergence convergence(1, 20);
  EXPECT_FALSE(convergence.add(0, 8, 1.0));
  EXPECT_FALSE(convergence.add(0, 8, 0.994));
  EXPECT_FALSE(convergence.add(0, 8, 0.988));
  EXPECT_FALSE(convergence.add(0, 8, 0.982));
}

TEST(convergence, nothing_that_runs_converges_too_and_no_patience_is_endless) {
  Convergence none(1, 16), endless(1, 0);
  EXPECT_TRUE(none.add(0, 16, INFINITY));
  EXPECT_FALSE(endless.add(0, 1000, 1.0));
}

}  // namespace
}  // namespace hone::search
