#include "hone/search/agent/dqn_agent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hone/cost/analytic_model.h"
#include "hone/search/agent/dqn_walk.h"
#include "hone/search/prediction.h"
#include "hone/search/searcher_testing.h"

namespace hone::search {
namespace {

TEST(dqn, reward_has_the_papers_weights_and_counts_iterations_against_it) {
  const DqnOptions options;
  const trial::BoundScores even = {.memory = 0.5, .core = 0.5};
  EXPECT_NEAR(dqn_reward(options, 1, 0.8, even, 0), 0.35 * 0.2 + 0.25, 1e-9);
  EXPECT_NEAR(dqn_reward(options, 1, 0.8, even, 0.5), 0.35 * 0.2 + 0.25 - 0.4 * 0.5, 1e-9);
  const trial::BoundScores core = {.memory = 0, .core = 1};  // the ratio has no bound of its own
  EXPECT_NEAR(dqn_reward(options, 1, 1, core, 0), 0.25 * options.ratio_bound, 1e-9);
}

std::shared_ptr<const std::vector<float>> state(float x) {
  std::vector<float> numbers(static_cast<size_t>(state_size(target::Kind::kCpu)));
  numbers[0] = x;
  return std::make_shared<const std::vector<float>>(std::move(numbers));
}

std::vector<float> move(float x) {
  std::vector<float> numbers(static_cast<size_t>(move_size()));
  numbers[0] = x;
  return numbers;
}

// A corridor of four places with a reward at its right end: from every place the value of going
// right is the discounted reward, and that of going left is less by two steps' discount.
TEST(dqn, learns_values_of_moves_whose_reward_comes_later) {
  DqnOptions options;
  options.learn_every = 1, options.follow_every = 50, options.rate = 3e-3, options.gamma = 0.8;
  DqnAgent agent(options, target::Kind::kCpu);
  Rng rng(3);
  const std::vector<std::vector<float>> both = {move(-1), move(1)};
  for (int i = 0; i < 3000; ++i) {
    const int at = static_cast<int>(rng.below(4)), step = rng.chance(0.5) ? 1 : -1;
    const int next = std::max(at + step, 0);
    const bool over = next == 4;
    Transition made{state(static_cast<float>(at) / 2), state(static_cast<float>(next) / 2),
                    move(static_cast<float>(step)), over ? decltype(both)() : both,
                    over ? 1.0 : 0.0};
    agent.remember(std::move(made), rng);
  }
  for (int at = 0; at < 4; ++at) {
    const auto here = state(static_cast<float>(at) / 2);
    const double right = agent.value(*here, both[1]);
    EXPECT_NEAR(right, std::pow(0.8, 3 - at), 0.12) << at;
    EXPECT_LT(agent.value(*here, both[0]), right) << at;
  }
}

TEST(dqn, random_moves_become_rare) {
  DqnOptions options;
  options.epsilon_moves = 10;
  DqnAgent agent(options, target::Kind::kCpu);
  EXPECT_NEAR(agent.epsilon(), options.first_epsilon, 1e-9);
  Rng rng(1);
  for (int i = 0; i < 100; ++i) agent.remember({state(0), state(1), move(1), {}, 0}, rng);
  EXPECT_NEAR(agent.epsilon(), options.last_epsilon, 1e-3);
}

TEST(dqn, what_an_agent_learned_is_kept_and_other_text_is_refused) {
  const testing::Fixture f;
  const auto policy = std::move(make_policy("dqn")).value();
  EXPECT_EQ(policy->save().value(), "");
  const std::unique_ptr<Searcher> searcher = policy->make_searcher(f.task(1));
  const std::vector<space::Point> points = searcher->propose(8);
  std::vector<double> seconds;
  for (const space::Point& point : points) seconds.push_back(f.seconds(point));
  searcher->observe(points, seconds);
  policy->observe(f.task(1), points, seconds);
  const std::string text = policy->save().value();
  EXPECT_NE(text.find("agent dqn view 1 cpu moves 63\n"), std::string::npos) << text.substr(0, 80);

  const auto other = std::move(make_policy("dqn")).value();
  ASSERT_TRUE(other->load(text).ok());
  EXPECT_EQ(other->save().value(), text);
  std::string old = text;
  old.replace(old.find("view 1"), 6, "view 0");
  EXPECT_NE(other->load(old).message().find("another view of schedules"), std::string::npos);
  for (const std::string& broken :
       {text.substr(0, text.size() - 1), text + text, text + "more", text.substr(10)}) {
    EXPECT_FALSE(other->load(broken).ok());
    EXPECT_EQ(other->save().value(), text);
  }
}

// Returns the least predicted time of three schedules that the walks of one batch propose, relative
// to that of the default one, for a convolution of so many channels.
double best_of_walk(Policy& policy, int channels, uint64_t seed) {
  testing::Fixture f;
  f.dag = compute::testing::conv2d({.h = 14, .w = 14, .ic = channels, .oc = 2 * channels});
  f.space = space::Space::create(f.dag, f.target);
  const std::unique_ptr<cost::CostModel> model = cost::make_analytic_model();
  SearchTask task = f.task(seed);
  task.model = model.get();
  task.key = static_cast<uint64_t>(channels);
  const std::unique_ptr<Searcher> searcher = policy.make_searcher(task);
  const std::vector<space::Point> points = searcher->propose(4);
  const std::vector<double> logs = predict_log_seconds(task, points);
  policy.observe(task, {}, {});
  return std::exp(*std::min_element(logs.begin() + 1, logs.end()) - logs[0]);
}

// Walks of twelve schedules from random ones. What was learned of convolutions with other numbers
// of channels finds faster schedules than random moves do, and than a net that has learned nothing.
TEST(dqn, what_was_learned_on_some_tasks_helps_on_others) {
  const auto trained = std::move(make_policy("dqn:walks=8,sampled=1,candidates=24")).value();
  for (const int channels : {16, 32, 64, 24, 48}) (void)best_of_walk(*trained, channels, 1);
  const std::string state = trained->save().value();
  double learned = 0, ignorant = 0, random = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    for (const int channels : {20, 40, 80}) {
      const auto greedy = std::move(make_policy("dqn:sampled=1,candidates=12,first_epsilon=0.05"));
      const auto loaded = std::move(make_policy("dqn:sampled=1,candidates=12,first_epsilon=0.05"));
      const auto any =
          std::move(make_policy("dqn:sampled=1,candidates=12,first_epsilon=1,last_epsilon=1"));
      ASSERT_TRUE(loaded.value()->load(state).ok());
      ignorant += best_of_walk(*greedy.value(), channels, seed) / 24;
      learned += best_of_walk(*loaded.value(), channels, seed) / 24;
      random += best_of_walk(*any.value(), channels, seed) / 24;
    }
  }
  RecordProperty("times", fmt::format("{:.3f} {:.3f} {:.3f}", learned, ignorant, random));
  EXPECT_LT(learned, 0.85 * random);
  EXPECT_LT(learned, 0.85 * ignorant);
}

// Off line, moves between stored points have their measured rewards: the value of the move to the
// faster of two is learned although the model knows no difference.
TEST(dqn, rehearsal_replays_stored_measurements_and_can_be_kept) {
  const testing::Fixture f;
  const auto policy = std::move(make_policy("dqn:candidates=8")).value();
  Rng rng(5);
  std::vector<space::Point> points = f.space->neighbours(f.space->default_point());
  ASSERT_GT(points.size(), 4U);
  points.push_back(f.space->default_point());
  std::vector<double> seconds;
  for (const space::Point& point : points) seconds.push_back(f.seconds(point));
  for (int pass = 0; pass < 3; ++pass) policy->rehearse(f.task(1), points, seconds);
  const std::string first = policy->save().value();
  const auto same = std::move(make_policy("dqn:candidates=8")).value();
  for (int pass = 0; pass < 3; ++pass) same->rehearse(f.task(1), points, seconds);
  EXPECT_EQ(same->save().value(), first);
  // The same points with other times teach something else.
  const auto other = std::move(make_policy("dqn:candidates=8")).value();
  std::vector<double> flat(points.size(), 1e-4);
  for (int pass = 0; pass < 3; ++pass) other->rehearse(f.task(1), points, flat);
  EXPECT_NE(other->save().value(), first);
  // A search goes on from it.
  const auto loaded = std::move(make_policy("dqn")).value();
  ASSERT_TRUE(loaded->load(first).ok());
  EXPECT_EQ(loaded->make_searcher(f.task(1))->propose(8).size(), 8U);
}

// One walk visits each measured neighbour of its start before any other one: with two points alone,
// its first move is the one between them.
TEST(dqn, walks_of_a_rehearsal_prefer_stored_points) {
  const testing::Fixture f;
  Guide guide(f.task(1));
  const space::Point start = f.space->default_point();
  const space::Point next = f.space->neighbours(start).front();
  const std::vector<space::Point> points = {start, next};
  const std::vector<double> seconds = {1e-3, 0.5e-3};
  guide.observe(points, seconds);
  std::vector<double> rewards;
  DqnOptions options;
  options.candidates = 2, options.phi2 = 0, options.phi3 = 0;
  std::vector<space::Point> visited;
  const auto to_stored = [&](const DqnPlace& place) {
    return static_cast<size_t>(std::ranges::find(place.neighbours, next) -
                               place.neighbours.begin());
  };
  const auto tell = [&](const Transition& made) { rewards.push_back(made.reward); };
  dqn_walk(guide, options, start, {to_stored, tell}, visited);
  EXPECT_EQ(visited, points);
  ASSERT_EQ(rewards.size(), 1U);
  EXPECT_NEAR(rewards[0], options.phi1 * 0.5, 1e-6);  // what was measured, not what is predicted
}

}  // namespace
}  // namespace hone::search
