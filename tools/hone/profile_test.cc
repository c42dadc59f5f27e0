#include "profile.h"

#include <gtest/gtest.h>

namespace hone::tool {
namespace {

// Two tasks that run kernels 0 and 1 as their phases, and one that runs kernel 2.
std::vector<StepTime> steps(double scale) {
  return {{"conv1", "conv2d+relu", 0, 1e-3 * scale, 4e6},
          {"conv1", "conv2d+relu", 1, 2e-3 * scale, 0},
          {"pool", "max_pool", 2, 10e-3 * scale, 0},
          {"conv2", "conv2d+relu", 0, 1e-3 * scale, 4e6},
          {"conv2", "conv2d+relu", 1, 0, 0}};
}

TEST(profile, one_line_for_all_tasks_of_one_kernel) {
  Profile profile;
  profile.add_run(steps(1));
  const std::vector<KernelTime> kernels = profile.kernels();
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_EQ(kernels[0].name, "pool");
  EXPECT_EQ(kernels[0].calls, 1);
  EXPECT_EQ(kernels[1].name, "conv1");
  EXPECT_EQ(kernels[1].kernel_class, "conv2d+relu");
  EXPECT_EQ(kernels[1].calls, 2);
  EXPECT_DOUBLE_EQ(kernels[1].seconds, 4e-3);
  EXPECT_EQ(kernels[1].flops, 8e6);
}

TEST(profile, takes_the_mean_over_runs) {
  Profile profile;
  profile.add_run(steps(1));
  profile.add_run(steps(3));
  EXPECT_EQ(profile.runs(), 2);
  EXPECT_DOUBLE_EQ(profile.kernels()[0].seconds, 20e-3);
  EXPECT_EQ(profile.kernels()[1].flops, 8e6);
  EXPECT_EQ(profile.json().size(), 2U);
}

TEST(profile, leaves_out_a_rate_that_is_not_known) {
  Profile profile;
  profile.add_run(steps(1));
  const std::string text = profile.text();
  EXPECT_NE(text.find("71.4 %        -"), std::string::npos) << text;
  EXPECT_NE(text.find("28.6 %      2.0"), std::string::npos) << text;
  EXPECT_NE(text.find("all kernels"), std::string::npos) << text;
}

TEST(profile, says_how_near_the_limit_each_kernel_comes) {
  std::vector<StepTime> times = steps(1);
  for (const size_t i : {0U, 2U, 3U}) times[i].bytes = 1e6;
  times[2].bytes = 2e6;
  times[3].least_flops = 3e7;  // 3 ms
  Profile profile(Limits(
      {.cores = 1, .flops = {1e10, 1e10}, .levels = {{0, 0, 1, {1e9, 1e9}, {1e9, 1e9}}}}, 1));
  profile.add_run(times);
  const std::vector<KernelTime> kernels = profile.kernels();
  EXPECT_DOUBLE_EQ(kernels[0].limit.seconds, 2e-3);
  EXPECT_EQ(kernels[0].limit.what, "memory");
  EXPECT_DOUBLE_EQ(kernels[1].limit.seconds, 4e-3);  // 1 ms of memory, 3 ms of arithmetic
  EXPECT_EQ(kernels[1].limit.what, "");
  const std::string text = profile.text();
  EXPECT_NE(text.find("of limit"), std::string::npos) << text;
  EXPECT_NE(text.find(" 20 % of memory\n"), std::string::npos) << text;  // 2 ms of 10
  EXPECT_NE(text.find(" 100 %\n"), std::string::npos) << text;           // 4 ms of 4
  EXPECT_NE(text.find(" 43 %\n"), std::string::npos) << text;            // 6 ms of 14
}

// A smaller run computes less, but nobody knows how much.
TEST(profile, of_a_smaller_run_says_no_rates) {
  Profile profile({}, false);
  profile.add_run(steps(1));
  EXPECT_EQ(profile.kernels()[0].flops, 0);
  EXPECT_GT(profile.kernels()[0].seconds, 0);
  EXPECT_TRUE(profile.json()[0]["flops"].is_null());
  EXPECT_TRUE(profile.json()[0]["limit_seconds"].is_null());
}

}  // namespace
}  // namespace hone::tool
