#include "hone/search/recall.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "hone/search/searcher_testing.h"

namespace hone::search {
namespace {

// Two convolutions by a model that knows nothing; large vectors are fast and so are few threads'
// parts, whatever the shape.
struct Shape : testing::Fixture {
  SearchTask search;
  explicit Shape(int64_t size) {
    dag = compute::testing::conv2d({.h = size, .w = size, .ic = 16, .oc = 32});
    space = space::Space::create(dag, target);
    search = task(static_cast<uint64_t>(size));
    search.key = static_cast<uint64_t>(size);
    search.family = "conv2d";
  }
  [[nodiscard]] double seconds(const space::Point& point) const {
    double log = -7;
    const std::vector<space::Decision>& decisions = space->decisions(point.sketch);
    for (size_t i = 0; i < decisions.size(); ++i) {
      const int64_t value = decisions[i].options[static_cast<size_t>(point.choices[i])];
      log += 0.2 * std::cos(static_cast<double>(value) + static_cast<double>(i));
    }
    return std::exp(log);
  }
  // Searches and tells the policy; the mean logarithm of the seconds of the first batch.
  double run(Policy& policy, int batches) const {
    const std::unique_ptr<Searcher> searcher = policy.make_searcher(search);
    double first = 0;
    for (int batch = 0; batch < batches; ++batch) {
      const std::vector<space::Point> points = searcher->propose(8);
      std::vector<double> times;
      for (const space::Point& point : points) times.push_back(seconds(point));
      if (batch == 0) {
        for (const double time : times) first += std::log(time) / static_cast<double>(times.size());
      }
      searcher->observe(points, times);
      policy.observe(search, points, times);
    }
    return first;
  }
};

TEST(recall, a_task_starts_from_what_others_of_its_family_showed) {
  const Shape first(28), second(14);
  for (const std::string name : {"mixed", "evolutionary"}) {
    const auto policy = std::move(make_policy(name + ":recall=1")).value();
    (void)first.run(*policy, 12);
    const double with = second.run(*policy, 1);
    const auto fresh = std::move(make_policy(name + ":recall=1")).value();
    const double without = second.run(*fresh, 1);
    EXPECT_LT(with, without - 0.2) << name;
    // A later run of the same strategy knows it, too.
    const auto later = std::move(make_policy(name + ":recall=1")).value();
    const auto before = std::move(make_policy(name + ":recall=1")).value();
    (void)first.run(*before, 12);
    const Result<std::string> state = before->save();
    ASSERT_TRUE(state.ok());
    ASSERT_TRUE(later->load(*state).ok());
    EXPECT_EQ(later->save().value(), *state);
    EXPECT_EQ(second.run(*later, 1), with) << name;
  }
}

TEST(recall, without_it_a_strategy_learns_nothing_from_task_to_task) {
  const Shape first(28), second(14);
  for (const std::string& name : strategy_names()) {
    if (name == "dqn") continue;  // it learns something else
    const auto policy = std::move(make_policy(name)).value();
    (void)first.run(*policy, 2);
    const auto fresh = std::move(make_policy(name)).value();
    EXPECT_EQ(second.run(*policy, 2), second.run(*fresh, 2)) << name;
    EXPECT_FALSE(policy->save().ok());
    EXPECT_FALSE(policy->load("").ok());
  }
}

// That a whole task is slower than predicted says nothing about its schedules.
TEST(recall, the_level_of_a_task_is_no_effect) {
  const Shape shape(14);
  Recall fast(1), slow(1);
  Rng rng(2);
  for (int batch = 0; batch < 4; ++batch) {
    std::vector<space::Point> points;
    std::vector<double> times, slower;
    for (int i = 0; i < 8; ++i) {
      points.push_back(shape.space->sample(rng));
      times.push_back(shape.seconds(points.back()));
      slower.push_back(3 * times.back());
    }
    times[3] = slower[3] = INFINITY;  // failed
    fast.observe(shape.search, points, times);
    slow.observe(shape.search, points, slower);
  }
  for (int i = 0; i < 20; ++i) {
    const space::Point point = shape.space->sample(rng);
    EXPECT_NEAR(fast.log_factor(shape.search, point), slow.log_factor(shape.search, point), 1e-9);
  }
}

TEST(recall, a_state_that_cannot_be_read_changes_nothing) {
  const Shape shape(14);
  const auto policy = std::move(make_policy("mixed:recall=0.5")).value();
  (void)shape.run(*policy, 2);
  const std::string before = policy->save().value();
  EXPECT_GT(before.size(), 100U);
  EXPECT_FALSE(policy->load("nonsense\n").ok());
  EXPECT_EQ(policy->save().value(), before);
}

}  // namespace
}  // namespace hone::search
