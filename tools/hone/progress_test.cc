#include "progress.h"

#include <gtest/gtest.h>

namespace hone::tool {
namespace {

search::TuneProgress half_way() {
  search::TuneProgress progress;
  progress.elapsed = 30, progress.budget = 60;
  progress.trials = 480, progress.trials_per_second = 16;
  progress.task = 1;
  progress.tasks = {{"conv1", 2, 4e-3, 2e-3, 100}, {"fc", 1, 4e-3, 2e-3, 20}};
  return progress;
}

TEST(progress, says_best_gain_speed_and_time_left) {
  EXPECT_EQ(progress_text(half_way()), "best 6.00 ms (2.00x), 480 trials, 16.0/s, 30.0 s left, fc");
}

TEST(progress, the_total_says_how_many_kernels_it_is_of) {
  search::TuneProgress progress = half_way();
  progress.tasks[1].best_seconds = 0;
  EXPECT_EQ(progress_text(progress),
            "best 4.00 ms (2.00x) of 1/2 kernels, 480 trials, 16.0/s, 30.0 s left, fc");
  progress.tasks[0].best_seconds = 0;
  EXPECT_EQ(progress_text(progress), "480 trials, 16.0/s, 30.0 s left, fc");
}

TEST(progress, the_bar_shows_the_share_of_the_time) {
  EXPECT_EQ(progress_bar(half_way(), 200),
            "[##########----------]  50%  " + progress_text(half_way()));
}

TEST(progress, the_bar_never_exceeds_the_terminal) {
  for (size_t columns = 0; columns < 100; ++columns)
    EXPECT_LE(progress_bar(half_way(), columns).size(), columns);
}

TEST(progress, a_late_report_stays_in_the_bar) {
  search::TuneProgress progress = half_way();
  progress.elapsed = 61;
  EXPECT_TRUE(progress_bar(progress, 200).starts_with("[####################] 100%  "));
  EXPECT_NE(progress_text(progress).find("0.0 s left"), std::string::npos);
}

}  // namespace
}  // namespace hone::tool
