#include "hone/base/clock.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

TEST(clock, real_time_passes_while_sleeping) {
  Clock& clock = real_clock();
  const double start = clock.now_seconds();
  clock.sleep(0.01);
  EXPECT_GE(clock.now_seconds() - start, 0.01);
}

TEST(clock, real_clock_does_not_sleep_for_nothing) {
  Clock& clock = real_clock();
  const double start = clock.now_seconds();
  clock.sleep(-1e9);
  clock.sleep(0);
  EXPECT_LT(clock.now_seconds() - start, 5.0);
}

TEST(clock, a_thread_that_sleeps_takes_no_time) {
  const double start = thread_seconds();
  real_clock().sleep(0.05);
  EXPECT_LT(thread_seconds() - start, 0.04);
  const double end = real_clock().now_seconds() + 0.02;
  while (real_clock().now_seconds() < end) {
  }
  EXPECT_GT(thread_seconds(), start);
}

TEST(clock, manual_clock_moves_only_when_told) {
  ManualClock clock(100);
  EXPECT_EQ(clock.now_seconds(), 100);
  clock.advance(2.5);
  EXPECT_EQ(clock.now_seconds(), 102.5);
  clock.sleep(3600);
  EXPECT_EQ(clock.now_seconds(), 3702.5);
  clock.sleep(-1);
  EXPECT_EQ(clock.now_seconds(), 3702.5);
}

}  // namespace
}  // namespace hone
