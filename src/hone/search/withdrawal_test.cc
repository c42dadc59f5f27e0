// A stored best that turns out to be wrong, or no longer runs, is none any more.
#include <gtest/gtest.h>

#include <climits>

#include "hone/search/tune_tasks_testing.h"

namespace hone::search {
namespace {

// Fails with one machine code so many times, from one of its jobs on.
class FailsWith final : public measure::Runner {
 public:
  FailsWith(measure::Runner& runner, std::string object, trial::Outcome outcome,
            std::string message, int from = 0, int times = INT_MAX)
      : runner_(runner),
        object_(std::move(object)),
        outcome_(outcome),
        message_(std::move(message)),
        from_(from),
        left_(times) {}
  [[nodiscard]] std::string_view name() const override { return "fails"; }
  [[nodiscard]] Status submit(std::vector<measure::Job> batch) override {
    for (const measure::Job& job : batch) ours_.push_back(job.executable.code == object_);
    return runner_.submit(std::move(batch));
  }
  [[nodiscard]] Result<std::vector<measure::Measurement>> collect() override {
    HONE_ASSIGN_OR_RETURN(std::vector<measure::Measurement> answers, runner_.collect());
    for (size_t i = 0; i < answers.size(); ++i) {
      if (!ours_[i] || ++jobs_ <= from_ || left_ == 0) continue;
      --left_;
      answers[i] = measure::failed(answers[i].id, outcome_, message_);
    }
    ours_.clear();
    return answers;
  }
  void cancel() override { runner_.cancel(); }

 private:
  measure::Runner& runner_;
  std::string object_;
  trial::Outcome outcome_;
  std::string message_;
  int from_, left_, jobs_ = 0;
  std::vector<bool> ours_;
};

TEST(withdrawal, a_stored_best_that_turns_out_to_be_wrong_is_none_any_more) {
  StoredFixture f;
  const auto before = f.best();
  ASSERT_TRUE(before.ok() && before->size() == 1);
  const std::string& steps = before->front().steps;

  FailsWith runner(f.runner, job_of(f.tasks[0], steps).executable.code.str(),
                   trial::Outcome::kWrongAnswer, "off by 1");
  f.options.runner = &runner;
  f.tasks[0].start = *schedule::parse_steps(steps);
  const Result<TuneResult> result = tune_tasks(f.tasks, f.options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(result->tasks[0].untuned_is_wrong);
  EXPECT_FALSE(result->tasks[1].untuned_is_wrong);
  EXPECT_NE(schedule::to_string(result->tasks[0].steps), steps);
  EXPECT_EQ(result->failures.at(trial::Outcome::kWrongAnswer).first, "off by 1");
  const auto after = f.best();
  ASSERT_TRUE(after.ok() && after->size() == 1);
  EXPECT_NE(after->front().steps, steps);
  const auto trials = f.store->query({.task = f.tasks[0].key});
  ASSERT_TRUE(trials.ok());
  int wrong = 0;
  for (const trial::Record& trial : *trials) {
    if (trial.steps != steps) continue;
    EXPECT_EQ(trial.outcome, trial::Outcome::kWrongAnswer);
    EXPECT_FALSE(trial.verified || trial.crowned);
    ++wrong;
  }
  EXPECT_GE(wrong, 2) << "the old one, and the one that found it out";
}

// A run that stores bests of both tasks; then another one in which the first task's fails. Returns
// the best schedule of that task before and after, the trials with it, and what the run said.
struct Failing {
  std::string before, after;
  std::vector<trial::Record> trials;
  TunedTask task;
  Failing(trial::Outcome outcome, int from, int times) {
    StoredFixture f;
    before = f.best()->at(0).steps;
    const std::string object = job_of(f.tasks[0], before).executable.code.str();
    measure::NullRunner quick([&](const measure::Job& job) -> Result<double> {
      f.clock.advance(0.05);
      return job.executable.code == object ? 9e-5
                                           : TuneFixture::code_seconds(job);  // nothing beats it
    });
    FailsWith runner(quick, object, outcome, "no luck", from, times);
    f.options.runner = &runner;
    f.options.max_trials = 80;
    f.tasks[0].start = *schedule::parse_steps(before);
    const Result<TuneResult> result = tune_tasks(f.tasks, f.options);
    EXPECT_TRUE(result.ok()) << result.status().message();
    task = result->tasks[0];
    after = f.best()->at(0).steps;
    const auto all = f.store->query({.task = f.tasks[0].key});
    EXPECT_TRUE(all.ok());
    for (const trial::Record& trial : *all) {
      if (trial.steps == before) trials.push_back(trial);
    }
  }
};

TEST(withdrawal, a_stored_best_that_fails_twice_is_none_any_more) {
  for (const trial::Outcome outcome :
       {trial::Outcome::kCrash, trial::Outcome::kTimeout, trial::Outcome::kLoad}) {
    const Failing f(outcome, 0, 1000);
    EXPECT_NE(f.after, f.before) << trial::outcome_name(outcome);
    EXPECT_NE(schedule::to_string(f.task.steps), f.before);
    EXPECT_TRUE(f.task.untuned_is_wrong);
    EXPECT_GE(f.trials.size(), 3U) << "the old one and two tries";
    for (const trial::Record& trial : f.trials) {
      EXPECT_EQ(trial.outcome, outcome);
      EXPECT_EQ(trial.message, "no luck");
      EXPECT_FALSE(trial.verified || trial.crowned);
    }
  }
}

TEST(withdrawal, a_stored_best_that_fails_once_stays) {
  const Failing f(trial::Outcome::kCrash, 0, 1);
  EXPECT_FALSE(f.task.untuned_is_wrong);
  int failed = 0, verified = 0;
  for (const trial::Record& trial : f.trials) {
    failed += trial.outcome == trial::Outcome::kCrash ? 1 : 0;
    verified += trial.verified ? 1 : 0;
  }
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(verified, 2) << "the old one and the second try";
}

TEST(withdrawal, a_best_that_ran_and_fails_when_it_is_timed_again_is_deposed) {
  const Failing f(trial::Outcome::kTimeout, 1, 1000);
  EXPECT_NE(f.after, f.before);
  EXPECT_NE(schedule::to_string(f.task.steps), f.before);
  EXPECT_GT(f.task.seconds, 0);
  for (const trial::Record& trial : f.trials) EXPECT_EQ(trial.outcome, trial::Outcome::kTimeout);
}

TEST(withdrawal, where_nothing_runs_the_stored_best_stays) {
  StoredFixture f;
  const auto before = f.best();
  measure::NullRunner broken([&](const measure::Job&) -> Result<double> {
    f.clock.advance(0.05);
    return error(Code::kInternal, "the machine is out of memory");
  });
  f.options.runner = &broken;
  ASSERT_TRUE(tune_tasks(f.tasks, f.options).ok());
  const auto after = f.best();
  ASSERT_TRUE(before.ok() && after.ok() && after->size() == 1);
  EXPECT_EQ(after->front().id, before->front().id);
}

}  // namespace
}  // namespace hone::search
