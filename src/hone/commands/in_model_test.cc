// Kernels compared inside the model: the decision on injected samples, and a small model with
// schedules that differ a lot.
#include "hone/commands/in_model.h"

#include <gtest/gtest.h>

#include "hone/base/clock.h"
#include "hone/graph/test_model.h"

namespace hone {
namespace {

// A busy machine: it drifts, every sample is disturbed a little, and bursts make a few in a row
// much longer.
class Machine {
 public:
  explicit Machine(uint64_t seed) : rng_(seed) {}
  double seconds(double quiet) {
    drift_ = std::clamp(drift_ + 0.01 * (rng_.uniform() - 0.5), 0.8, 1.5);
    if (burst_ == 0 && rng_.chance(0.03)) burst_ = 1 + static_cast<int>(rng_.below(4));
    const double hit = burst_ > 0 ? 1.2 + rng_.uniform() : 1;
    burst_ -= burst_ > 0 ? 1 : 0;
    return quiet * drift_ * hit * (1 + 0.03 * rng_.uniform());
  }
  trial::Duel duel(double challenger, double best, int pairs) {
    trial::Duel duel;
    for (int i = 0; i < pairs; ++i) {
      const bool first = rng_.chance(0.5);
      const double a = seconds(first ? challenger : best), b = seconds(first ? best : challenger);
      duel.challenger.push_back(first ? a : b);
      duel.incumbent.push_back(first ? b : a);
    }
    return duel;
  }

 private:
  Rng rng_;
  double drift_ = 1;
  int burst_ = 0;
};

// How many of `contests` end with which winner, -1 in place 0.
std::vector<int> outcomes(const std::vector<double>& challengers, int pairs, int contests) {
  std::vector<int> counts(challengers.size() + 1, 0);
  for (int i = 0; i < contests; ++i) {
    Machine machine(static_cast<uint64_t>(i + 1));
    std::vector<trial::Duel> duels;
    for (const double seconds : challengers) duels.push_back(machine.duel(seconds, 1, pairs));
    ++counts[static_cast<size_t>(winner(duels) + 1)];
  }
  return counts;
}

TEST(in_model, noise_promotes_no_loser) {
  EXPECT_EQ(outcomes({1.03, 1.02}, 60, 300)[0], 300);
  EXPECT_GE(outcomes({1, 1}, 60, 300)[0], 285);
  EXPECT_EQ(outcomes({0.7, 0.7}, 5, 20)[0], 20) << "five wins may be chance";
  EXPECT_EQ(winner({}), -1);
}

TEST(in_model, the_fastest_challenger_takes_the_place) {
  EXPECT_GE(outcomes({0.95}, 60, 100)[1], 95);
  const std::vector<int> counts = outcomes({0.97, 1.02, 0.9}, 60, 100);
  EXPECT_GE(counts[3], 95);
  EXPECT_EQ(counts[2], 0);
}

CompileOptions one_thread() {
  CompileOptions options;
  options.records.use_db = false;
  options.target.threads = 1;
  return options;
}

// Two products of one task and one of another.
graph::Graph three_products() {
  Rng rng(5);
  graph::TestModel model;
  model.input("x", {96, 96});
  for (const char* name : {"0", "1"})
    model.constant(std::string("w") + name, graph::random_tensor({96, 96}, rng));
  model.constant("w2", graph::random_tensor({96, 8}, rng));
  model.node("MatMul", {"x", "w0"}, {"a"}).node("Relu", {"a"}, {"b"});
  model.node("MatMul", {"b", "w1"}, {"c"}).node("Relu", {"c"}, {"d"});
  return model.node("MatMul", {"d", "w2"}, {"y"}).output("y").graph();
}

struct Fixture {
  std::unique_ptr<Session> session = Session::open(one_thread()).value();
  ModelTasks model = make_tasks(*session, three_products(), one_thread()).value();
  std::vector<schedule::Steps> fast, slow;  // per group: the default, and no optimization at all
  Fixture() {
    for (size_t g = 0; g < model.tasks.groups.size(); ++g) {
      const Result<space::Space> space = space::Space::create(model.dag(g), model.target());
      EXPECT_TRUE(space.ok());
      fast.push_back(space->steps(space->default_point()));
      slow.emplace_back();
    }
  }
  Result<InModelResult> compare(const std::vector<schedule::Steps>& schedules,
                                const std::vector<Contest>& contests,
                                const std::atomic<bool>* interrupted = nullptr) {
    const double deadline = real_clock().now_seconds() + 30;  // it ends when all is decided
    return compare_in_model(model, schedules, contests, {deadline, 1, interrupted});
  }
};

TEST(in_model, a_challenger_that_is_faster_in_the_model_wins) {
  Fixture f;
  ASSERT_EQ(f.model.tasks.groups.size(), 2U);
  ASSERT_EQ(f.model.tasks.groups[0].calls.size(), 2U);
  const Result<InModelResult> faster = f.compare({f.slow[0], f.fast[1]}, {{0, {{f.fast[0], 1}}}});
  ASSERT_TRUE(faster.ok()) << faster.status().message();
  EXPECT_EQ(faster->winners, std::vector<int>{0});
  EXPECT_GT(faster->saved_seconds, 0);
  EXPECT_GT(faster->model_seconds, 0);
  const Result<InModelResult> slower =
      f.compare(f.fast, {{0, {{f.slow[0], 1}}}, {1, {{f.slow[1], 1}}}});
  ASSERT_TRUE(slower.ok()) << slower.status().message();
  EXPECT_EQ(slower->winners, (std::vector<int>{-1, -1}));
  EXPECT_GE(slower->rounds, 3);
}

TEST(in_model, an_interrupt_leaves_everything_as_it_was) {
  Fixture f;
  const std::atomic<bool> interrupted = true;
  const Result<InModelResult> result =
      f.compare({f.slow[0], f.fast[1]}, {{0, {{f.fast[0], 1}}}}, &interrupted);
  EXPECT_EQ(result.status().code(), Code::kCancelled);
}

TEST(in_model, close_runners_up_of_tasks_that_matter_are_compared) {
  Fixture f;
  f.model.summaries[0].seconds = 1e-6;
  f.model.summaries[1].seconds = 1e-3;
  const auto groups = [&](double first, double second) {
    const std::vector<std::vector<search::MeasuredSchedule>> runners_up = {
        {{f.slow[0], first}}, {{f.fast[1], 1e-3}, {f.slow[1], second}}};
    std::vector<size_t> found;
    for (const Contest& contest : contests_of(f.model, f.fast, runners_up, 10)) {
      found.push_back(contest.group);
      EXPECT_EQ(contest.challengers.size(), 1U) << "one of them is the best itself";
    }
    return found;
  };
  EXPECT_EQ(groups(1e-6, 1.05e-3), std::vector<size_t>{1}) << "the other takes too little time";
  EXPECT_TRUE(groups(1e-6, 1.2e-3).empty());
  const std::vector<std::vector<search::MeasuredSchedule>> other_split = {
      {}, {{f.slow[1], 1.4e-3, true}, {f.slow[0], 1.4e-3}, {{}, 1.6e-3, true}}};
  const std::vector<Contest> of_split = contests_of(f.model, f.fast, other_split, 10);
  ASSERT_EQ(of_split.size(), 1U);
  ASSERT_EQ(of_split[0].challengers.size(), 1U);
  EXPECT_EQ(of_split[0].challengers[0].steps, f.slow[1]);
  const std::vector<std::vector<search::MeasuredSchedule>> fewer_weights = {
      {}, {{f.slow[1], 1.4e-3, false, true}, {f.slow[0], 1.4e-3}, {{}, 1.6e-3, false, true}}};
  const std::vector<Contest> of_weights = contests_of(f.model, f.fast, fewer_weights, 10);
  ASSERT_EQ(of_weights.size(), 1U);
  ASSERT_EQ(of_weights[0].challengers.size(), 1U);
  EXPECT_EQ(of_weights[0].challengers[0].steps, f.slow[1]);
  f.model.summaries[0].seconds = 0.4e-3;
  EXPECT_EQ(groups(0.41e-3, 1.05e-3), (std::vector<size_t>{1, 0}));

  const std::vector<std::vector<search::MeasuredSchedule>> runners_up = {
      {{f.slow[0], 0.4e-3}, {{}, 0.4e-3}}, {{f.slow[1], 1e-3}, {{}, 1e-3}}};
  const auto counts = [&](int most) {
    std::vector<size_t> found;
    for (const Contest& contest : contests_of(f.model, f.fast, runners_up, most))
      found.push_back(contest.challengers.size());
    return found;
  };
  EXPECT_EQ(counts(10), (std::vector<size_t>{2, 2}));
  EXPECT_EQ(counts(3), (std::vector<size_t>{2, 1}));
  EXPECT_EQ(counts(2), (std::vector<size_t>{1, 1}));
  EXPECT_EQ(counts(1), std::vector<size_t>{1});
  EXPECT_TRUE(counts(0).empty());
}

}  // namespace
}  // namespace hone
