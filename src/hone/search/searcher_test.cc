#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "hone/compute/dag_testing.h"
#include "hone/search/prediction.h"
#include "hone/search/registry.h"

namespace hone::search {
namespace {

// Knows nothing, or (with skew) prefers schedules with many steps: what a bad model does.
class BlindModel : public cost::CostModel {
 public:
  explicit BlindModel(double skew = 0) : skew_(skew) {}
  [[nodiscard]] std::string_view name() const override { return "blind"; }
  [[nodiscard]] Result<std::vector<double>> predict(
      std::span<const cost::Query> queries) const override {
    std::vector<double> seconds;
    for (const cost::Query& query : queries) {
      seconds.push_back(
          1e-3 *
          (1 + skew_ * static_cast<double>(query.candidate->state.stages.back().order.size())));
    }
    return seconds;
  }
  [[nodiscard]] Status update(std::span<const cost::Observation>) override { return ok_status(); }

 private:
  double skew_;
};

struct Fixture {
  target::Target target;
  compute::Dag dag = compute::testing::conv2d({.h = 14, .w = 14, .ic = 32, .oc = 64});
  Result<space::Space> space = space::Space::create(dag, target);
  BlindModel model;
  [[nodiscard]] SearchTask task(uint64_t seed) const {
    return {&*space, &target, &model, 1, 42, seed};
  }
  // The time of a point: smooth in its decisions, best somewhere inside.
  [[nodiscard]] double seconds(const space::Point& point) const {
    double cost = 1;
    const std::vector<float> x = space->encode(point);
    for (size_t i = 0; i < x.size(); ++i)
      cost += std::pow(x[i] - 0.3 - 0.4 * static_cast<double>(i % 2), 2);
    return cost * 1e-4;
  }
  // Best of `trials` measurements in batches of 8.
  [[nodiscard]] std::vector<double> run(std::string_view name, uint64_t seed, int trials) const {
    const std::unique_ptr<Searcher> searcher = std::move(make_searcher(name, task(seed))).value();
    std::vector<double> all;
    while (static_cast<int>(all.size()) < trials) {
      const std::vector<space::Point> points = searcher->propose(8);
      if (points.empty()) break;
      std::vector<double> times;
      for (const space::Point& point : points) times.push_back(seconds(point));
      searcher->observe(points, times);
      all.insert(all.end(), times.begin(), times.end());
    }
    return all;
  }
};

double best_of(const std::vector<double>& times) {
  return *std::min_element(times.begin(), times.end());
}

TEST(searcher, proposes_the_default_point_first_and_nothing_twice) {
  const Fixture f;
  ASSERT_TRUE(f.space.ok()) << f.space.status().message();
  for (const std::string& name : searcher_names()) {
    const std::unique_ptr<Searcher> searcher = std::move(make_searcher(name, f.task(1))).value();
    std::set<uint64_t> points, schedules;
    for (int batch = 0; batch < 10; ++batch) {
      const std::vector<space::Point> proposed = searcher->propose(8);
      ASSERT_FALSE(proposed.empty()) << name;
      if (batch == 0) {
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
  for (const std::string& name : searcher_names()) {
    const std::unique_ptr<Searcher> searcher = std::move(make_searcher(name, f.task(1))).value();
    const std::vector<space::Point> known = {f.space->default_point()};
    searcher->observe(known, std::vector<double>{1e-3});
    for (const space::Point& point : searcher->propose(8)) EXPECT_NE(point, known[0]) << name;
  }
}

TEST(searcher, same_seed_and_measurements_give_the_same_proposals) {
  const Fixture f;
  for (const std::string& name : searcher_names()) {
    EXPECT_EQ(f.run(name, 7, 64), f.run(name, 7, 64)) << name;
    EXPECT_NE(f.run(name, 7, 64), f.run(name, 8, 64)) << name;
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
  const std::unique_ptr<Searcher> searcher =
      std::move(make_searcher("evolutionary", f.task(1))).value();
  for (int batch = 0; batch < 4; ++batch) {
    const std::vector<space::Point> points = searcher->propose(8);
    ASSERT_EQ(points.size(), 8U);
    searcher->observe(points, std::vector<double>(points.size(), INFINITY));
  }
}

TEST(searcher, unknown_strategies_are_an_error_that_lists_the_known_ones) {
  const Fixture f;
  const auto searcher = make_searcher("astrology", f.task(1));
  ASSERT_FALSE(searcher.ok());
  EXPECT_NE(searcher.status().message().find("evolutionary"), std::string::npos);
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

TEST(prediction, a_model_without_opinion_leaves_the_default_point) {
  const Fixture f;
  EXPECT_EQ(best_predicted(f.task(3), {.samples = 50}).point, f.space->default_point());
}

}  // namespace
}  // namespace hone::search
