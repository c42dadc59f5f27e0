#include <gtest/gtest.h>

#include <set>

#include "hone/cost/decision_history.h"
#include "hone/search/prediction.h"
#include "hone/search/searcher_testing.h"

namespace hone::search {
namespace {

using testing::best_of;
using testing::BlindModel;
using testing::Fixture;

TEST(searcher, guided_begins_with_the_default_point_and_none_proposes_anything_twice) {
  const Fixture f;
  ASSERT_TRUE(f.space.ok()) << f.space.status().message();
  for (const std::string& name : strategy_names()) {
    const std::unique_ptr<Searcher> searcher = testing::make_searcher(name, f.task(1));
    std::set<uint64_t> points, schedules;
    for (int batch = 0; batch < 6; ++batch) {
      const std::vector<space::Point> proposed = searcher->propose(8);
      ASSERT_FALSE(proposed.empty()) << name;
      if (batch == 0 && name != "random") {
        EXPECT_EQ(proposed[0], f.space->default_point()) << name;
      }
      std::vector<double> times;
      for (const space::Point& point : proposed) {
        EXPECT_TRUE(points.insert(space::hash(point)).second) << name;
        EXPECT_TRUE(schedules.insert(schedule::hash(f.space->steps(point))).second) << name;
        EXPECT_TRUE(f.space->legal(point)) << name;
        times.push_back(f.seconds(point));
      }
      searcher->observe(proposed, times);
    }
  }
}

TEST(searcher, never_proposes_what_an_earlier_run_measured) {
  const Fixture f;
  for (const std::string& name : strategy_names()) {
    const std::unique_ptr<Searcher> searcher = testing::make_searcher(name, f.task(1));
    const std::vector<space::Point> known = {f.space->default_point()};
    searcher->observe(known, std::vector<double>{1e-3});
    for (const space::Point& point : searcher->propose(8)) EXPECT_NE(point, known[0]) << name;
  }
}

TEST(searcher, same_seed_and_measurements_give_the_same_proposals) {
  const Fixture f;
  for (const std::string& name : strategy_names()) {
    const std::vector<double> first = f.run(name, 7, 32);
    EXPECT_EQ(first, f.run(name, 7, 32)) << name;
    EXPECT_NE(first, f.run(name, 8, 32)) << name;
  }
}

TEST(searcher, evolution_learns_what_a_blind_model_cannot_tell) {
  const Fixture f;
  double evolution = 0, random = 0;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    evolution += best_of(f.run("evolutionary", seed, 96));
    random += best_of(f.run("random", seed, 96));
  }
  EXPECT_LT(evolution, 0.95 * random);
}

TEST(searcher, survives_candidates_that_fail) {
  const Fixture f;
  for (const std::string& name : strategy_names()) {
    const std::unique_ptr<Searcher> searcher = testing::make_searcher(name, f.task(1));
    for (int batch = 0; batch < 3; ++batch) {
      const std::vector<space::Point> points = searcher->propose(8);
      ASSERT_EQ(points.size(), 8U) << name;
      searcher->observe(points, std::vector<double>(points.size(), INFINITY));
    }
  }
}

TEST(prediction, best_predicted_is_no_worse_than_samples_and_default) {
  Fixture f;
  f.model = BlindModel(0.1);
  const SearchTask task = f.task(3);
  const Predicted best = best_predicted(task, {.samples = 100});
  EXPECT_LE(best.seconds, best.default_seconds);
  Rng rng(5);
  for (int i = 0; i < 30; ++i) {
    const space::Point point = f.space->sample(rng);
    EXPECT_LE(std::log(best.seconds), predict_log_seconds(task, std::span(&point, 1))[0] + 0.05);
  }
}

// Rows that are cut into parts for other threads.
TEST(prediction, on_one_thread_nothing_is_divided_among_threads) {
  Fixture f;
  const Result<space::Space> rows =
      space::Space::create(compute::testing::centred_rows(1, 1 << 17), *f.task(1).target);
  ASSERT_TRUE(rows.ok());
  ASSERT_TRUE(rows->is_for_threads(1));
  const space::Point parts = rows->default_point(1);
  SearchTask task = f.task(1);
  task.space = &*rows;
  for (const int threads : {1, 2}) {
    task.threads = threads;
    const double log = predict_log_seconds(task, std::span(&parts, 1))[0];
    EXPECT_EQ(std::isfinite(log), threads > 1);
    if (threads == 1) {
      EXPECT_EQ(best_predicted(task, {.samples = 50}).point.sketch, 0);
    }
  }
}

// Of hints for memory, which no model sees.
TEST(prediction, what_makes_no_difference_is_left_to_the_rule_of_thumb) {
  Fixture f;
  f.model = BlindModel(0.1);
  f.target.cpu().caches = {{1, 32 << 10, 64, 1, 64}, {2, 256 << 10, 64, 1, 32}};
  f.dag = compute::testing::gemm(1, 512, 512);
  f.space = space::Space::create(f.dag, f.target);
  ASSERT_TRUE(f.space.ok());
  int asked = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const space::Point best = best_predicted(f.task(seed), {.samples = 50}).point;
    const std::vector<space::Decision>& decisions = f.space->decisions(best.sketch);
    for (size_t i = 0; i < decisions.size(); ++i) {
      if (!decisions[i].name.ends_with(".ahead")) continue;
      ++asked;
      EXPECT_EQ(decisions[i].options[static_cast<size_t>(best.choices[i])], 8) << seed;
    }
  }
  EXPECT_GT(asked, 0);
}

// Blocks of a sum are chosen by measuring, or by rule of thumb.
TEST(prediction, blocks_that_models_have_not_seen_are_those_of_the_rule_of_thumb) {
  Fixture f;
  f.model = BlindModel(0.1);
  SearchTask task = f.task(3);
  target::Target target = *task.target;
  target.cpu().caches.resize(2);
  target.cpu().caches[1].bytes = 16 << 10;
  const Result<space::Space> space =
      space::Space::create(compute::testing::gemm(197, 33, 1031), target);
  ASSERT_TRUE(space.ok());
  task.space = &*space;
  task.target = &target;
  const space::Point rule = space->default_point();
  ASSERT_TRUE(cost::DecisionHistory(*space).has_blocks(rule));
  for (int seed = 1; seed < 4; ++seed) {
    task.seed = static_cast<uint64_t>(seed);
    EXPECT_EQ(best_predicted(task, {.samples = 50}).point, rule);
  }
  // A shorter sum may be cut, but is not by rule of thumb.
  target.cpu().caches[1].bytes = 80 << 10;
  const Result<space::Space> shorter =
      space::Space::create(compute::testing::gemm(197, 33, 1031), target);
  ASSERT_TRUE(shorter.ok());
  task.space = &*shorter;
  const cost::DecisionHistory history(*shorter);
  ASSERT_FALSE(history.has_blocks(shorter->default_point()));
  for (int seed = 1; seed < 4; ++seed) {
    task.seed = static_cast<uint64_t>(seed);
    EXPECT_FALSE(history.has_blocks(best_predicted(task, {.samples = 50}).point));
  }
}

TEST(prediction, a_model_without_opinion_leaves_the_default_point) {
  const Fixture f;
  EXPECT_EQ(best_predicted(f.task(3), {.samples = 50}).point, f.space->default_point());
  // That of the first sketch that is not for several threads only.
  SearchTask task = f.task(3);
  target::Target target = *task.target;
  target.cpu().cores = 4;
  const Result<space::Space> rows =
      space::Space::create(compute::testing::running_sum(1, 1 << 18), target);
  ASSERT_TRUE(rows.ok() && rows->is_for_threads(0));
  task.space = &*rows;
  for (const int threads : {1, 2}) {
    task.threads = threads;
    EXPECT_EQ(best_predicted(task, {.samples = 50}).point, rows->default_point(2 - threads));
  }
}

}  // namespace
}  // namespace hone::search
