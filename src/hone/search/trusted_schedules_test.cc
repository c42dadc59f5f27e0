#include "hone/search/trusted_schedules.h"

#include <gtest/gtest.h>

#include "hone/measure/null_runner.h"

namespace hone::search {
namespace {

schedule::Steps steps(const char* axis) { return {schedule::Parallel{"y", axis}}; }

measure::Measurement crash() { return measure::failed(0, trial::Outcome::kCrash, "no luck"); }

// A task with a stored best and one to be beaten, of which a batch failed.
struct Fixture {
  TrustedSchedules trusted;
  int measured = 0;
  bool fails = true;
  measure::NullRunner runner{[this](const measure::Job&) -> Result<double> {
    ++measured;
    if (fails) return error(Code::kInternal, "no luck");
    return 1e-3;
  }};
  std::vector<Candidate> candidates;
  std::vector<measure::Measurement> measurements;

  Fixture() {
    trusted.set_untuned(steps("untuned"));
    trusted.add_stored(steps("stored"), 0.5);
  }
  void add(const char* axis, measure::Measurement measurement) {
    candidates.push_back({.steps = steps(axis)});
    measurements.push_back(std::move(measurement));
  }
  void try_again(bool others_run) {
    ASSERT_TRUE(trusted.try_again(candidates, measurements, others_run, runner).ok());
  }
};

TEST(trusted_schedules, are_the_stored_and_the_untuned_until_they_are_invalidated) {
  Fixture f;
  EXPECT_TRUE(f.trusted.contain(steps("stored")) && f.trusted.contain(steps("untuned")));
  EXPECT_FALSE(f.trusted.contain(steps("new")));
  f.trusted.invalidate(steps("new"));
  f.trusted.invalidate(steps("stored"));
  EXPECT_FALSE(f.trusted.contain(steps("stored")));
  EXPECT_TRUE(f.trusted.stored().empty());
  EXPECT_FALSE(f.trusted.untuned_is_wrong());
  f.trusted.invalidate(steps("untuned"));
  EXPECT_TRUE(f.trusted.untuned_is_wrong());
}

TEST(trusted_schedules, fail_twice_before_they_are_refuted) {
  Fixture f;
  f.add("stored", crash());
  f.add("new", crash());
  f.try_again(true);
  EXPECT_EQ(f.measured, 1) << "who was never good is not tried again";
  ASSERT_EQ(f.candidates.size(), 3U);
  EXPECT_EQ(f.candidates[2].steps, steps("stored"));
  EXPECT_TRUE(f.trusted.is_refuted(steps("stored"), f.measurements[2]));
  EXPECT_FALSE(f.trusted.is_refuted(steps("new"), f.measurements[1]));
}

TEST(trusted_schedules, stay_if_they_run_the_second_time) {
  Fixture f;
  f.fails = false;
  f.add("stored", crash());
  f.try_again(true);
  ASSERT_EQ(f.measurements.size(), 2U);
  EXPECT_EQ(f.measurements[1].outcome, trial::Outcome::kOk);
  EXPECT_FALSE(f.trusted.is_refuted(steps("stored"), f.measurements[0]));
}

// It may be the machine's fault as long as nothing else of the task ran.
TEST(trusted_schedules, wait_until_something_runs) {
  Fixture f;
  f.add("untuned", crash());
  f.try_again(false);
  EXPECT_EQ(f.measured, 0);
  f.candidates.clear(), f.measurements.clear();
  f.add("new", {});
  f.try_again(false);
  EXPECT_EQ(f.measured, 1);
  ASSERT_EQ(f.candidates.size(), 2U);
  EXPECT_EQ(f.candidates[1].steps, steps("untuned"));
}

TEST(trusted_schedules, a_wrong_answer_needs_no_second_try) {
  Fixture f;
  f.add("stored", measure::failed(0, trial::Outcome::kWrongAnswer, "off by 1"));
  f.try_again(true);
  EXPECT_EQ(f.measured, 0);
  EXPECT_TRUE(f.trusted.is_refuted(steps("stored"), f.measurements[0]));
  EXPECT_TRUE(f.trusted.is_refuted(steps("new"), f.measurements[0]));
}

}  // namespace
}  // namespace hone::search
