#include "hone/search/repeated_timing.h"

#include <gtest/gtest.h>

#include <map>

namespace hone::search {
namespace {

// Answers with what is scripted for each job, pass by pass; the last one for ever.
struct Script {
  std::map<uint64_t, std::vector<double>> seconds;  // negative: a crash
  std::map<uint64_t, size_t> runs;
  std::vector<double> tolerances;
  std::vector<bool> counted;

  Execute execute() {
    return [this](std::vector<measure::Job> jobs) -> Result<std::vector<measure::Measurement>> {
      std::vector<measure::Measurement> answers;
      for (const measure::Job& job : jobs) {
        tolerances.push_back(job.tolerance);
        counted.push_back(job.count_bounds);
        const std::vector<double>& list = seconds[job.id];
        const double value = list[std::min(runs[job.id]++, list.size() - 1)];
        if (value < 0) {
          answers.push_back(measure::failed(job.id, trial::Outcome::kCrash, "crash"));
          continue;
        }
        measure::Measurement answer{.id = job.id, .verified = job.tolerance > 0};
        answer.timing.samples = {value, value * 1.01};
        trial::summarise(answer.timing);
        if (job.count_bounds) answer.bounds = {{0.5, 0.25}, "test"};
        answers.push_back(answer);
      }
      return answers;
    };
  }
};

std::vector<measure::Job> jobs(int n) {
  std::vector<measure::Job> result(static_cast<size_t>(n));
  for (size_t i = 0; i < result.size(); ++i) result[i].id = i, result[i].tolerance = 1e-4;
  return result;
}

TEST(repeated_timing, times_in_two_passes_and_again_where_they_differ) {
  Script script{.seconds = {{0, {1, 1.02}}, {1, {2, 1, 1.01}}, {2, {1, 2, 4, 8}}}};
  const auto all = time_repeatedly(jobs(3), 1, script.execute());
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(script.runs[0], 2U);
  EXPECT_EQ(script.runs[1], 3U);
  EXPECT_EQ(script.runs[2], static_cast<size_t>(kMaxPasses));  // never agrees
  EXPECT_EQ((*all)[0].timing.samples.size(), 4U);
  EXPECT_DOUBLE_EQ(fastest((*all)[1]), 1);
  EXPECT_TRUE((*all)[1].verified);
  // Outputs are compared in the first pass only.
  EXPECT_EQ(script.tolerances[0], 1e-4);
  EXPECT_EQ(script.tolerances[3], 0);
}

TEST(repeated_timing, slow_and_failed_ones_run_once) {
  Script script{.seconds = {{0, {5}}, {1, {-1}}, {2, {1}}}};
  const auto all = time_repeatedly(jobs(3), 1, script.execute());
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(script.runs[0], 1U);
  EXPECT_EQ(script.runs[1], 1U);
  EXPECT_EQ(script.runs[2], 2U);
  EXPECT_EQ((*all)[1].outcome, trial::Outcome::kCrash);
}

TEST(repeated_timing, counts_in_the_first_pass_only) {
  Script script{.seconds = {{0, {1, 2, 1}}}};
  std::vector<measure::Job> job = jobs(1);
  job[0].count_bounds = true;
  const auto all = time_repeatedly(job, 1, script.execute());
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(script.counted, (std::vector<bool>{true, false, false}));
  EXPECT_EQ((*all)[0].bounds->source, "test");
}

TEST(repeated_timing, what_fails_in_a_later_pass_has_failed) {
  Script script{.seconds = {{0, {1, -1}}}};
  const auto all = time_repeatedly(jobs(1), 1, script.execute());
  ASSERT_TRUE(all.ok());
  EXPECT_EQ((*all)[0].outcome, trial::Outcome::kCrash);
  EXPECT_EQ(script.runs[0], 2U);
}

TEST(repeated_timing, gives_nothing_when_cancelled) {
  const Execute cancelled = [](std::vector<measure::Job>) {
    return Result<std::vector<measure::Measurement>>(std::vector<measure::Measurement>());
  };
  const auto all = time_repeatedly(jobs(2), 1, cancelled);
  ASSERT_TRUE(all.ok());
  EXPECT_TRUE(all->empty());
}

}  // namespace
}  // namespace hone::search
