#include <gtest/gtest.h>

#include "hone/search/agent/ppo_searcher.h"
#include "hone/search/bayes_searcher.h"
#include "hone/search/coordinate_searcher.h"
#include "hone/search/prediction.h"
#include "hone/search/searcher_testing.h"

namespace hone::search {
namespace {

using testing::best_of;
using testing::Fixture;

// The fastest point there is, as far as 40 descents over pairs of neighbours find it.
double known_best(const Fixture& f) {
  Rng rng(11);
  double best = INFINITY;
  for (int start = 0; start < 40; ++start) {
    space::Point point = f.space->sample(rng);
    double seconds = f.seconds(point);
    for (bool better = true; better;) {
      better = false;
      for (const space::Point& next : f.space->neighbours(point)) {
        for (const space::Point& second : f.space->neighbours(next)) {
          if (f.seconds(second) >= seconds) continue;
          seconds = f.seconds(second), point = second, better = true;
        }
      }
    }
    best = std::min(best, seconds);
  }
  return best;
}

TEST(strategies, each_comes_close_to_the_known_best_and_beats_random_search) {
  const Fixture f;
  constexpr int kTrials = 96;
  constexpr int kSeeds = 2;
  const double best = known_best(f);
  double random = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed)
    random += best_of(f.run("random", seed, kTrials)) / best / kSeeds;
  for (const std::string& name : strategy_names()) {
    if (name == "random") continue;
    double found = 0;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed)
      found += best_of(f.run(name, seed, kTrials)) / best / kSeeds;
    RecordProperty(name, fmt::format("{:.3f}", found));
    // It measures points that stand for others, not only the best predicted ones.
    EXPECT_LT(found, name == "ppo" ? 1.2 : 1.1) << name;
    EXPECT_LT(found - 1, 0.5 * (random - 1)) << name;
  }
}

// What the process of bayes starts from.
TEST(strategies, bayes_corrects_the_model_or_ignores_it) {
  Fixture f;
  const std::vector<double> corrected = f.run("bayes", 3, 32);
  f.model = testing::BlindModel(0.1);
  EXPECT_NE(f.run("bayes", 3, 32), corrected);
  EXPECT_NE(f.run("bayes:prior=none", 3, 32), f.run("bayes", 3, 32));
}

// However many points are measured, the way from a default point stays open.
TEST(strategies, ppo_starts_a_chain_from_a_default_point_and_half_from_measured_ones) {
  const Fixture f;
  Guide guide(f.task(1));
  std::vector<space::Point> points;
  std::vector<double> seconds;
  for (int i = 0; i < 40; ++i) {
    points.push_back(f.space->sample(guide.rng()));
    seconds.push_back(f.seconds(points.back()));
  }
  guide.observe(points, seconds);
  const std::vector<space::Point> starts = chain_starts(guide, 16);
  ASSERT_EQ(starts.size(), 16U);
  EXPECT_EQ(starts[6], guide.measured()[6].point);
  const std::vector<space::Point> defaults = f.space->default_points();
  EXPECT_NE(std::ranges::find(defaults, starts[7]), defaults.end());
}

// The three best predicted sketches have distributions at first. What was measured may speak for
// another one.
TEST(strategies, es_goes_on_with_a_sketch_that_turns_out_to_be_the_fastest) {
  const Fixture f;
  ASSERT_GT(f.space->num_sketches(), 3);
  const auto searcher = testing::make_searcher("es", f.task(1));
  std::vector<space::Point> points = searcher->propose(64);
  std::vector<double> seconds(points.size(), 1e-3);
  std::vector<int> proposed(static_cast<size_t>(f.space->num_sketches()));
  for (const space::Point& point : points) ++proposed[static_cast<size_t>(point.sketch)];
  const auto rare = static_cast<int>(std::ranges::min_element(proposed) - proposed.begin());
  for (const space::Point& next : f.space->neighbours(f.space->default_point(rare))) {
    points.push_back(next);
    seconds.push_back(1e-6);
  }
  searcher->observe(points, seconds);
  int count = 0;
  for (const space::Point& point : searcher->propose(32)) count += point.sketch == rare;
  EXPECT_GE(count, 16);
}

// Ten times as long with each stage more.
class StagesModel : public testing::BlindModel {
 public:
  [[nodiscard]] Result<std::vector<double>> predict(
      std::span<const cost::Query> queries) const override {
    std::vector<double> seconds;
    for (const cost::Query& query : queries) {
      const auto stages = static_cast<double>(query.candidate->state.stages.size());
      seconds.push_back(1e-6 * std::pow(10, stages));
    }
    return seconds;
  }
};

TEST(strategies, mixed_begins_with_the_sketches_that_are_not_hopeless) {
  const Fixture f;
  const StagesModel stages;
  int left_out = 0;
  for (const cost::CostModel* model : {static_cast<const cost::CostModel*>(&f.model),
                                       static_cast<const cost::CostModel*>(&stages)}) {
    SearchTask task = f.task(1);
    task.model = model;
    const std::vector<space::Point> defaults = f.space->default_points();
    const std::vector<double> logs = predict_log_seconds(task, defaults);
    const double least = *std::min_element(logs.begin(), logs.end());
    const std::vector<space::Point> first =
        testing::make_searcher("mixed", task)->propose(f.space->num_sketches() + 4);
    for (size_t i = 0; i < defaults.size(); ++i) {
      const bool proposed = std::find(first.begin(), first.end(), defaults[i]) != first.end();
      const bool wanted = logs[i] <= least + std::log(2) || defaults[i] == f.space->default_point();
      EXPECT_EQ(proposed, wanted) << i;
      left_out += !wanted;
    }
  }
  EXPECT_GT(left_out, 0);
}

// Strategies need not know which decisions may move.
TEST(strategies, each_moves_only_what_may_move) {
  const Fixture f;
  const space::Subspace part(*f.space, {.roles = {{"column", "vectors", "order"}}});
  ASSERT_TRUE(part.can_move());
  for (const std::string& name : strategy_names()) {
    const std::unique_ptr<Policy> policy = std::move(make_policy(name)).value();
    const std::unique_ptr<Searcher> searcher = policy->make_searcher(f.task(1), &part);
    // A search that comes to stored schedules of the whole space, all better than the default.
    Rng rng(2);
    std::vector<space::Point> stored;
    for (int i = 0; i < 10; ++i) stored.push_back(f.space->sample(rng));
    searcher->observe(stored, std::vector<double>(stored.size(), 1e-6));
    int moved = 0;
    for (int round = 0; round < 6; ++round) {
      const std::vector<space::Point> points = searcher->propose(8);
      std::vector<double> times;
      for (const space::Point& point : points) {
        times.push_back(f.seconds(point));
        if (point == f.space->default_point()) continue;
        EXPECT_EQ(part.project(point), f.space->canonical(point)) << name;
        ++moved;
      }
      searcher->observe(points, times);
    }
    EXPECT_GT(moved, 40) << name;
  }
}

// A time that was a stroke of luck, or a schedule that fails when it runs again.
TEST(strategies, a_point_that_is_slower_or_fails_the_second_time_ends_no_search) {
  const Fixture f;
  for (const double later : {1e-2, static_cast<double>(INFINITY)}) {
    for (const std::string& name : strategy_names()) {
      const auto searcher = testing::make_searcher(name, f.task(1));
      for (int round = 0; round < 5; ++round) {
        const std::vector<space::Point> points = searcher->propose(8);
        std::vector<double> times;
        for (const space::Point& point : points) times.push_back(f.seconds(point));
        searcher->observe(points, times);
        const std::vector<double> again(points.size(), later);
        searcher->observe(points, again);
        EXPECT_FALSE(points.empty()) << name;
      }
    }
  }
}

TEST(strategies, descent_ends_by_significance_and_starts_again_elsewhere) {
  const Fixture f;
  CoordinateSearcher searcher(std::make_shared<Guide>(f.task(1)), {.significance = 0.01});
  int trials = 0;
  while (searcher.restarts() == 0 && trials < 400) {
    const std::vector<space::Point> points = searcher.propose(8);
    std::vector<double> times;
    for (const space::Point& point : points) times.push_back(f.seconds(point));
    searcher.observe(points, times);
    trials += static_cast<int>(points.size());
  }
  // It ended before it had measured a tenth of the moves along each line: those that cannot gain
  // were not tried.
  EXPECT_GE(trials, 16);
  EXPECT_LT(trials, 200);
}

}  // namespace
}  // namespace hone::search
