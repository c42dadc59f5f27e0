#include "hone/runtime/waking.h"

#include <gtest/gtest.h>

namespace hone::runtime {
namespace {

constexpr int64_t kSpin = 150'000, kPause = 1'000'000;

// Runs that are called after a pause, and ask once.
class Paced {
 public:
  // Returns whether a run wakes the threads, which then help or come too late.
  bool run(bool they_help, int64_t pause = kPause) {
    now_ += pause;
    waking.begin_run();
    const bool wakes = waking.pays(now_, kSpin);
    if (wakes && they_help) waking.note_help();
    if (waking.learns()) waking.end_run(now_ + length);
    return wakes;
  }
  int count_wakings(int runs, bool they_help, int64_t pause = kPause) {
    int count = 0;
    for (int i = 0; i < runs; ++i) count += run(they_help, pause) ? 1 : 0;
    return count;
  }

  Waking waking;
  int64_t length = 10'000;

 private:
  int64_t now_ = 7;
};

TEST(waking, threads_that_help_are_always_woken) {
  Paced paced;
  EXPECT_EQ(paced.count_wakings(100, true), 100);
}

TEST(waking, threads_that_come_too_late_are_woken_ever_more_rarely) {
  Paced paced;
  EXPECT_TRUE(paced.run(false));
  EXPECT_FALSE(paced.run(false));
  EXPECT_TRUE(paced.run(false));
  EXPECT_EQ(paced.count_wakings(1 + 3, false), 1);
  EXPECT_EQ(paced.count_wakings(100, false), 3);
  EXPECT_EQ(paced.count_wakings(64 * 10, false), 10) << "one of 64, in the long run";
}

TEST(waking, once_they_help_they_are_woken_again) {
  Paced paced;
  paced.count_wakings(1000, false);
  ASSERT_GE(paced.count_wakings(Waking::kMostSkipped + 1, true), 1);
  EXPECT_EQ(paced.count_wakings(100, true), 100);
}

TEST(waking, a_caller_that_comes_back_at_once_wakes_them) {
  Paced paced;
  paced.count_wakings(500, false);
  EXPECT_FALSE(paced.run(false));
  EXPECT_TRUE(paced.run(false, kSpin / 2));
  EXPECT_FALSE(paced.run(false)) << "a pause again";
}

TEST(waking, a_run_that_becomes_long_wakes_them_and_so_does_the_next) {
  Paced paced;
  paced.count_wakings(500, false);
  constexpr int64_t kNow = int64_t{1} << 40;
  paced.waking.begin_run();
  EXPECT_FALSE(paced.waking.pays(kNow, kSpin));
  EXPECT_FALSE(paced.waking.pays(kNow + Waking::kLongRun / 2, kSpin));
  EXPECT_TRUE(paced.waking.pays(kNow + 2 * Waking::kLongRun, kSpin));
  EXPECT_FALSE(paced.waking.learns());
  paced.waking.begin_run();
  EXPECT_TRUE(paced.waking.pays(kNow + kPause, kSpin));
}

TEST(waking, long_runs_always_wake_them) {
  Paced paced;
  paced.count_wakings(500, false);
  paced.length = 2 * Waking::kLongRun;
  ASSERT_GE(paced.count_wakings(Waking::kMostSkipped + 1, false), 1);
  EXPECT_EQ(paced.count_wakings(100, false), 100);
}

TEST(waking, a_run_without_them_that_was_long_is_the_last_one) {
  Paced paced;
  paced.count_wakings(500, false);
  paced.length = 2 * Waking::kLongRun;
  EXPECT_FALSE(paced.run(false));
  EXPECT_TRUE(paced.run(false));
}

TEST(waking, other_work_is_tried_afresh) {
  Paced paced;
  paced.count_wakings(500, false);
  paced.waking.forget();
  EXPECT_TRUE(paced.run(true));
}

}  // namespace
}  // namespace hone::runtime
