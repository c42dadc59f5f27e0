#include "progress.h"

#include <gtest/gtest.h>

namespace hone::tool {
namespace {

TuneProgress half_way() {
  TuneProgress progress;
  progress.elapsed = 30, progress.budget = 60, progress.left = 30;
  progress.trials = 480, progress.trials_per_second = 16;
  progress.task = 1;
  progress.tasks = {{"conv1", 2, 4e-3, 2e-3, 100}, {"fc", 1, 4e-3, 2e-3, 20}};
  return progress;
}

TEST(progress, says_best_gain_speed_and_time_left) {
  EXPECT_EQ(progress_text(half_way()), "best 6.00 ms (2.00x), 480 trials, 16.0/s, 30.0 s left, fc");
}

TEST(progress, after_the_search_it_says_what_is_done) {
  TuneProgress progress = half_way();
  progress.task = -1, progress.stage = "writing the library";
  EXPECT_EQ(progress_text(progress),
            "best 6.00 ms (2.00x), 480 trials, 16.0/s, 30.0 s left, writing the library");
}

TEST(progress, the_total_says_how_many_kernels_it_is_of) {
  TuneProgress progress = half_way();
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

TEST(progress, the_table_shows_the_largest_shares_first) {
  TuneProgress progress = half_way();
  progress.tasks[0].share = 0.3, progress.tasks[0].expected_gain = 0.012;
  progress.tasks[0].bound_seconds = 1e-3;
  progress.tasks[1].share = 0.7, progress.tasks[1].bound_seconds = 1.96e-3;
  progress.tasks[1].at_limit = true;
  progress.tasks.push_back({.name = "pool", .share = 0.001});
  EXPECT_EQ(progress_table(progress, 3),
            "kernel  count     best  of limit   share  gain in 10 s\n"
            "------------------------------------------------------\n"
            "fc          1  2.00 ms    98.0 %  70.0 %          done\n"
            "conv1       2  2.00 ms    50.0 %  30.0 %         1.2 %\n"
            "pool        1        -         -   0.1 %         0.0 %\n");
  EXPECT_EQ(progress_table(progress, 1).find("conv1"), std::string::npos);
}

TEST(progress, a_late_report_stays_in_the_bar) {
  TuneProgress progress = half_way();
  progress.elapsed = 61, progress.left = 0;
  EXPECT_TRUE(progress_bar(progress, 200).starts_with("[####################] 100%  "));
  EXPECT_NE(progress_text(progress).find("0.0 s left"), std::string::npos);
}

}  // namespace
}  // namespace hone::tool
