#include "kernel_history.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace hone::tool {
namespace {

TrialInfo trial(double seconds, const std::string& decisions = "", const std::string& steps = "") {
  TrialInfo trial;
  trial.kernel_class = "gemm";
  trial.outcome = seconds > 0 ? "ok" : "timeout";
  trial.seconds = seconds;
  trial.verified = seconds > 0;
  trial.decisions = decisions;
  trial.steps = steps;
  return trial;
}

TEST(kernel_history, the_best_is_verified) {
  KernelHistory history;
  history.add(trial(0), 1, 1);
  history.add(trial(4e-3, "", "first"), 2, 2);
  TrialInfo unverified = trial(1e-3, "", "wrong");
  unverified.verified = false;
  history.add(unverified, 3, 5);
  history.add(trial(5e-3, "", "slower"), 4, 6);
  history.add(trial(2e-3, "", "best"), 5, 9);
  EXPECT_EQ(history.trials(), 5);
  EXPECT_EQ(history.failed(), 1);
  EXPECT_EQ(history.best_seconds(), 2e-3);
  EXPECT_EQ(history.best_steps(), "best");
  EXPECT_EQ(history.kernel_class(), "gemm");
  ASSERT_EQ(history.improvements().size(), 2U);
  EXPECT_EQ(history.improvements()[0].number, 2);
  EXPECT_EQ(history.improvements()[1].at, 5);
  EXPECT_EQ(history.points(100).size(), 5U);
}

TEST(kernel_history, few_points_keep_what_became_the_best) {
  KernelHistory history;
  for (int i = 1; i <= 1000; ++i) {
    const bool better = i == 100 || i == 501 || i == 900;
    history.add(trial(better ? 1.0 / i : 2 + 1e-3 * i), i, i);
  }
  const std::vector<HistoryPoint> points = history.points(50);
  EXPECT_LE(points.size(), 50U);
  EXPECT_GE(points.size(), 20U);
  size_t found = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    EXPECT_LT(i == 0 ? 0 : points[i - 1].number, points[i].number);
    found += points[i].number == 100 || points[i].number == 501 || points[i].number == 900;
  }
  EXPECT_EQ(found, 3U);
}

TEST(kernel_history, a_decision_that_matters_explains_the_times) {
  KernelHistory history;
  for (int i = 0; i < 60; ++i) {
    const int lanes = i % 2 == 0 ? 8 : 16, column = 1 + i % 3;
    const double seconds = (lanes == 8 ? 2e-3 : 1e-3) * (1 + 0.01 * (i % 7));
    history.add(trial(seconds, fmt::format("direct relu:lanes={} relu:column={}/56 relu:fixed=1",
                                           lanes, column)),
                i, i + 1);
  }
  const std::vector<DecisionEffect> effects = history.decisions();
  ASSERT_EQ(effects.size(), 2U);  // the sketch and "fixed" have one value
  EXPECT_EQ(effects[0].name, "relu:lanes");
  EXPECT_EQ(effects[0].values, 2);
  EXPECT_EQ(effects[0].best, "16");
  EXPECT_GT(effects[0].explained, 0.95);
  EXPECT_DOUBLE_EQ(effects[0].other, 2);
  EXPECT_EQ(effects[1].name, "relu:column");
  EXPECT_LT(effects[1].explained, 0.1);
  EXPECT_NEAR(effects[1].other, 1, 0.02);
}

TEST(kernel_history, decisions_of_any_text_are_harmless) {
  KernelHistory history;
  for (const char* text : {"", " ", "=", "a=b=c/d", "direct  x= =y", "direct x=1/0/2", "\xff=\xff"})
    history.add(trial(1e-3, text), 0, 1);
  EXPECT_EQ(history.trials(), 7);
  EXPECT_LE(history.decisions().size(), 4U);
}

TEST(kernel_history, a_kernel_counts_with_its_first_time_before_it_was_measured) {
  KernelHistory first, second;
  first.add(trial(4e-3), 1, 1);
  second.add(trial(1e-3), 2, 2);
  first.add(trial(3e-3), 3, 3);
  second.add(trial(0.5e-3), 4, 4);
  const std::vector<HistoryPoint> curve = model_curve({{&first, 1}, {&second, 2}});
  ASSERT_EQ(curve.size(), 3U);
  EXPECT_DOUBLE_EQ(curve[0].seconds, 6e-3);
  EXPECT_DOUBLE_EQ(curve[1].seconds, 5e-3);
  EXPECT_EQ(curve[1].number, 3);
  EXPECT_DOUBLE_EQ(curve[2].seconds, 4e-3);
  EXPECT_TRUE(model_curve({}).empty());
}

}  // namespace
}  // namespace hone::tool
