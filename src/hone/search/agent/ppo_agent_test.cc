#include "hone/search/agent/ppo_agent.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hone/search/agent/clusters.h"

namespace hone::search {
namespace {

TEST(ppo, probabilities_are_those_of_the_actions_that_it_takes) {
  Rng rng(2);
  const PpoAgent agent({}, 2, rng);
  const std::vector<float> state = {0.2F, 0.8F};
  const std::vector<float> chances = agent.probabilities(state);
  std::vector<double> counts(chances.size());
  constexpr int kDraws = 4000;
  for (int i = 0; i < kDraws; ++i) {
    const PpoStep step = agent.act(state, rng);
    double log_probability = 0;
    for (size_t d = 0; d < 2; ++d) {
      const size_t taken = d * 3 + static_cast<size_t>(step.action[d] + 1);
      counts[taken] += 1.0 / kDraws;
      log_probability += std::log(chances[taken]);
    }
    EXPECT_NEAR(step.log_probability, log_probability, 1e-5);
  }
  for (size_t i = 0; i < counts.size(); ++i) EXPECT_NEAR(counts[i], chances[i], 0.04) << i;
}

// The reward is how much nearer a decision comes to 0.7, and the other decision does not matter.
TEST(ppo, learns_where_to_move) {
  Rng rng(4);
  PpoOptions options;
  options.rate = 1e-2, options.entropy = 0.01;
  PpoAgent agent(options, 2, rng);
  for (int round = 0; round < 60; ++round) {
    std::vector<PpoAgent::Walk> walks(8);
    for (PpoAgent::Walk& walk : walks) {
      std::vector<float> state = {static_cast<float>(rng.uniform()), 0.5F};
      for (int i = 0; i < 10; ++i) {
        PpoStep step = agent.act(state, rng);
        const float before = std::abs(state[0] - 0.7F);
        state[0] += 0.1F * static_cast<float>(step.action[0]);
        step.reward = before - std::abs(state[0] - 0.7F);
        walk.steps.push_back(std::move(step));
      }
      walk.end = state;
    }
    agent.learn(walks, rng);
  }
  EXPECT_GT(agent.probabilities(std::vector<float>{0.1F, 0.5F})[2], 0.8);
  EXPECT_GT(agent.probabilities(std::vector<float>{1.2F, 0.5F})[0], 0.8);
}

// With the default options a task's search has some ten batches to learn in. Each decision should
// come to 0.7; the policy starts with moves of equal chances.
TEST(ppo, learns_in_the_few_batches_of_a_search) {
  Rng rng(7);
  const PpoOptions options;
  PpoAgent agent(options, 2, rng);
  const auto walk_reward = [&](PpoAgent::Walk& walk) {
    std::vector<float> state = {static_cast<float>(rng.uniform()),
                                static_cast<float>(rng.uniform())};
    double sum = 0;
    for (int i = 0; i < options.steps; ++i) {
      PpoStep step = agent.act(state, rng);
      for (size_t d = 0; d < state.size(); ++d) {
        const float before = std::abs(state[d] - 0.7F);
        state[d] = std::clamp(state[d] + 0.1F * static_cast<float>(step.action[d]), 0.0F, 1.0F);
        step.reward += before - std::abs(state[d] - 0.7F);
      }
      sum += step.reward;
      walk.steps.push_back(std::move(step));
    }
    walk.end = state;
    return sum / options.chains;
  };
  double first = 0, last = 0;
  for (int batch = 0; batch < 24; ++batch) {
    std::vector<PpoAgent::Walk> walks(static_cast<size_t>(options.chains));
    double sum = 0;
    for (PpoAgent::Walk& walk : walks) sum += walk_reward(walk);
    if (batch < 4) first += sum / 4;
    if (batch >= 20) last += sum / 4;
    agent.learn(walks, rng);
  }
  RecordProperty("rewards", fmt::format("{:.3f} {:.3f}", first, last));
  EXPECT_GT(last, first + 0.1);
}

TEST(ppo, a_high_weight_of_entropy_keeps_actions_equally_likely) {
  Rng rng(4);
  PpoOptions options;
  options.rate = 1e-2, options.entropy = 10;
  PpoAgent agent(options, 1, rng);
  const std::vector<float> state = {0.5F};
  for (int round = 0; round < 200; ++round) {
    PpoAgent::Walk walk{{agent.act(state, rng), agent.act(state, rng)}, state};
    agent.learn(std::span(&walk, 1), rng);
  }
  for (const float chance : agent.probabilities(state)) EXPECT_NEAR(chance, 1.0 / 3, 0.05);
}

std::vector<std::vector<float>> heaps(int count, Rng& rng) {
  std::vector<std::vector<float>> rows;
  for (int i = 0; i < 20 * count; ++i) {
    rows.push_back({static_cast<float>(i % count) + 0.01F * static_cast<float>(rng.normal()),
                    static_cast<float>(i % count % 3)});
  }
  return rows;
}

TEST(clusters, centres_are_in_the_middle_of_heaps_of_points) {
  Rng rng(6);
  const std::vector<std::vector<float>> rows = heaps(5, rng);
  double least = INFINITY;  // k-means may end in a local minimum
  for (int attempt = 0; attempt < 5; ++attempt) least = std::min(least, cluster(rows, 5, rng).loss);
  EXPECT_LT(least, 0.1);
  EXPECT_EQ(nearest(rows, rows[7]), 7U);
}

TEST(clusters, there_are_no_more_than_points_and_more_where_points_are_apart) {
  Rng rng(6);
  const std::vector<std::vector<float>> same(30, {1, 2});
  EXPECT_EQ(cluster(same, 8, rng).centres.size(), 1U);
  EXPECT_TRUE(cluster({}, 8, rng).centres.empty());
  EXPECT_EQ(adaptive_clusters(same, 2.5, rng).centres.size(), 1U);
  EXPECT_GT(adaptive_clusters(heaps(16, rng), 2.5, rng).centres.size(), 8U);
}

}  // namespace
}  // namespace hone::search
