#include "hone/search/champion.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "hone/search/noisy_runner_testing.h"

namespace hone::search {
namespace {

schedule::Steps steps(const std::string& axis) { return {schedule::Parallel{"y", axis}}; }

// Candidates on a quiet machine, each with seconds of its own; those with ids in `broken` do not
// run, those in `wrong` compute something else.
struct Fixture {
  ManualClock clock;
  std::set<uint64_t> broken, wrong;
  Noise quiet = {.jitter = 0.002, .interruptions = 0, .drift = 0, .burst_factor = 1};
  NoisyRunner noisy{1, clock, [](const measure::Job& job) { return std::stod(job.label); }, quiet};

  // Fails with some of the jobs.
  class Breaking final : public measure::Runner {
   public:
    explicit Breaking(Fixture& f) : f_(f) {}
    [[nodiscard]] std::string_view name() const override { return "breaking"; }
    [[nodiscard]] Status submit(std::vector<measure::Job> batch) override {
      return f_.noisy.submit(std::move(batch));
    }
    [[nodiscard]] Result<std::vector<measure::Measurement>> collect() override {
      HONE_ASSIGN_OR_RETURN(std::vector<measure::Measurement> answers, f_.noisy.collect());
      for (measure::Measurement& m : answers) {
        if (f_.broken.contains(m.id)) m = measure::failed(m.id, trial::Outcome::kCrash, "broken");
        if (f_.wrong.contains(m.id))
          m = measure::failed(m.id, trial::Outcome::kWrongAnswer, "wrong");
      }
      return answers;
    }
    void cancel() override {}

   private:
    Fixture& f_;
  };
  Breaking runner{*this};
  TaskContext context;
  TrustedSchedules trusted;
  Champion champion{context};

  Fixture() { trusted.set_untuned(steps("untuned")); }

  static Candidate candidate(uint64_t id, double seconds, const std::string& axis) {
    Candidate candidate{.steps = steps(axis)};
    candidate.job.id = id;
    candidate.job.label = fmt::format("{}", seconds);
    candidate.job.tolerance = 1e-4;
    candidate.job.executable.entries.resize(1);
    return candidate;
  }
  std::vector<Trial> judge(const std::vector<Candidate>& candidates) {
    std::vector<measure::Job> jobs;
    for (const Candidate& each : candidates) jobs.push_back(each.job);
    EXPECT_TRUE(runner.submit(jobs).ok());
    auto trials =
        champion.judge(candidates, runner.collect().value(), trusted, runner, clock.now_seconds());
    EXPECT_TRUE(trials.ok());
    return std::move(trials).value();
  }
  [[nodiscard]] uint64_t incumbent() const { return champion.incumbent().job().id; }
};

TEST(champion, the_first_incumbent_is_trusted_and_what_is_faster_wins_by_a_duel) {
  Fixture f;
  const std::vector<Trial> trials =
      f.judge({Fixture::candidate(1, 2e-3, "slow"), Fixture::candidate(2, 1e-3, "untuned"),
               Fixture::candidate(3, 0.8e-3, "fast")});
  EXPECT_FALSE(trials[0].promoted);
  EXPECT_TRUE(trials[1].promoted) << "as what is to be beaten";
  EXPECT_TRUE(trials[2].promoted) << "in a duel";
  EXPECT_GT(trials[2].measurement.duel.pairs(), 0U);
  EXPECT_EQ(f.incumbent(), 3U);
  ASSERT_EQ(f.champion.finalists().all().size(), 3U);
  EXPECT_EQ(f.champion.finalists().all()[0].candidate.job.id, 3U);
  EXPECT_NEAR(f.champion.incumbent().seconds(), 0.8e-3, 0.02e-3);
}

TEST(champion, the_stored_best_is_the_scale) {
  Fixture f;
  f.trusted.add_stored(steps("stored"), 2e-3);  // on that day it took twice as long
  const std::vector<Trial> trials =
      f.judge({Fixture::candidate(1, 1e-3, "untuned"), Fixture::candidate(2, 0.9e-3, "stored")});
  EXPECT_EQ(f.incumbent(), 2U);
  EXPECT_DOUBLE_EQ(f.champion.incumbent().seconds(), 2e-3);
  EXPECT_NEAR(trials[0].seconds, 2e-3 / 0.9, 0.05e-3);
}

TEST(champion, what_is_wrong_or_fails_is_no_finalist) {
  Fixture f;
  f.wrong = {1}, f.broken = {2};
  const std::vector<Trial> trials =
      f.judge({Fixture::candidate(1, 1e-4, "untuned"), Fixture::candidate(2, 1e-4, "broken"),
               Fixture::candidate(3, 1e-3, "right")});
  EXPECT_FALSE(trials[0].usable || trials[1].usable);
  EXPECT_EQ(f.incumbent(), 3U);
  EXPECT_EQ(f.champion.finalists().all().size(), 1U);
}

// In a duel it computes something else than alone.
TEST(champion, a_challenger_that_is_wrong_in_a_duel_is_not_used) {
  Fixture f;
  f.judge({Fixture::candidate(1, 1e-3, "untuned")});
  const Candidate fast = Fixture::candidate(2, 0.5e-3, "fast");
  EXPECT_TRUE(f.runner.submit({fast.job}).ok());
  std::vector<measure::Measurement> alone = f.runner.collect().value();
  f.wrong = {2};
  const auto trials = f.champion.judge({&fast, 1}, alone, f.trusted, f.runner, 0);
  ASSERT_TRUE(trials.ok());
  EXPECT_EQ((*trials)[0].measurement.outcome, trial::Outcome::kWrongAnswer);
  EXPECT_FALSE((*trials)[0].usable);
  EXPECT_EQ(f.incumbent(), 1U);
  EXPECT_EQ(f.champion.finalists().all().size(), 1U);
}

TEST(champion, an_incumbent_that_fails_twice_gives_way_to_the_next) {
  Fixture f;
  f.judge({Fixture::candidate(1, 1e-3, "untuned"), Fixture::candidate(2, 2e-3, "next")});
  f.clock.advance(10);  // it is due
  f.broken = {1};
  const auto deposed = f.champion.refresh(f.runner, f.clock);
  ASSERT_TRUE(deposed.ok());
  ASSERT_TRUE(*deposed);
  EXPECT_EQ((*deposed)->candidate.job.id, 1U);
  EXPECT_EQ((*deposed)->second.outcome, trial::Outcome::kCrash);
  EXPECT_EQ(f.incumbent(), 2U);
  // There is no other one: it stays.
  f.clock.advance(10);
  f.broken = {2};
  const auto again = f.champion.refresh(f.runner, f.clock);
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(*again);
  EXPECT_EQ(f.incumbent(), 2U);
}

TEST(champion, at_the_end_those_that_are_hardly_slower_get_longer_duels) {
  Fixture f;
  f.judge({Fixture::candidate(1, 1e-3, "untuned")});
  f.judge({Fixture::candidate(2, 1.03e-3, "close"), Fixture::candidate(3, 1.3e-3, "far")});
  ASSERT_EQ(f.incumbent(), 1U);
  f.wrong = {2, 3};
  const auto finals = f.champion.compare_finalists(f.runner);
  ASSERT_TRUE(finals.ok());
  ASSERT_EQ(finals->size(), 1U) << "only the close one was looked at";
  EXPECT_EQ((*finals)[0].candidate.job.id, 2U);
  EXPECT_EQ((*finals)[0].trial.measurement.outcome, trial::Outcome::kWrongAnswer);
  ASSERT_EQ(f.champion.finalists().all().size(), 2U);
  EXPECT_EQ(f.champion.finalists().all()[1].candidate.job.id, 3U);
}

}  // namespace
}  // namespace hone::search
