#include "hone/search/acquisition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numbers>

#include "hone/base/rng.h"
#include "hone/search/decision_process.h"

namespace hone::search {
namespace {

// z times the share of a normal distribution below z, plus its density there.
TEST(acquisition, expected_improvement_is_that_of_the_formula) {
  EXPECT_NEAR(expected_improvement(0, 0, 1), 0.3989422804014327, 1e-12);
  EXPECT_NEAR(expected_improvement(1, 0, 1), 1.0833154705876863, 1e-12);
  EXPECT_NEAR(expected_improvement(-2, 0, 1), 0.0084907026165883, 1e-12);
  // It has the unit of the values.
  EXPECT_NEAR(expected_improvement(7.5, 7, 0.5), 0.5 * 1.0833154705876863, 1e-12);
  // A sure value improves by the difference, or by nothing.
  EXPECT_NEAR(expected_improvement(1, 0.25, 1e-9), 0.75, 1e-9);
  EXPECT_NEAR(expected_improvement(1, 1.25, 1e-9), 0, 1e-9);
}

TEST(acquisition, expected_improvement_is_the_mean_of_what_draws_improve) {
  constexpr int kDraws = 200'000;
  Rng rng(3);
  for (const auto& [best, mean, deviation] :
       {std::array{0.3, 0.5, 0.4}, std::array{-2.0, -2.5, 0.3}, std::array{1.0, 2.0, 0.8}}) {
    double sum = 0;
    for (int i = 0; i < kDraws; ++i) sum += std::max(best - (mean + deviation * rng.normal()), 0.0);
    EXPECT_NEAR(expected_improvement(best, mean, deviation), sum / kDraws, 0.01 * deviation);
  }
}

// log(1 + e^(8 bound)), which is 8 bound far above 0 and positive below.
TEST(acquisition, the_confidence_bound_grows_with_what_may_be_gained) {
  const auto of_bound = [](double bound) { return confidence_bound(bound, 0, 1, 0); };
  EXPECT_NEAR(of_bound(0), std::numbers::ln2, 1e-12);
  EXPECT_NEAR(of_bound(1), 8.000335406372896, 1e-12);
  EXPECT_NEAR(of_bound(-1), 3.354063728956e-4, 1e-12);
  EXPECT_GT(of_bound(-20), 0);
  EXPECT_TRUE(std::isfinite(of_bound(1e3)));
  // kappa standard deviations below the mean are what counts.
  EXPECT_NEAR(confidence_bound(2, 2.5, 0.2, 1.5), of_bound(2 - (2.5 - 1.5 * 0.2)), 1e-12);
  EXPECT_EQ(confidence_bound(2, 1.75, 0.5, 0), confidence_bound(2, 2.25, 0.25, 2));
  EXPECT_GT(confidence_bound(2, 2.5, 0.6, 1.5), confidence_bound(2, 2.5, 0.5, 1.5));
  EXPECT_LT(confidence_bound(2, 2.6, 0.5, 1.5), confidence_bound(2, 2.5, 0.5, 1.5));
}

TEST(acquisition, the_chance_outside_a_ball_is_the_share_of_draws_outside) {
  Rng rng(4);
  constexpr int kDraws = 20'000;
  int outside = 0;
  for (int i = 0; i < kDraws; ++i) outside += 0.3 + 0.4 * rng.normal() <= 0.5;
  EXPECT_NEAR(chance_outside_ball(0.5, 0.3, 0.4), static_cast<double>(outside) / kDraws, 0.015);
}

// A process over one decision of a sketch, and a pool at some places: the second is beside the
// first, and the third is far away.
struct Pool {
  GaussianProcess process{[](std::span<const float> a, std::span<const float> b) {
                            return std::exp(-decision_distance(a, b) * 50);
                          },
                          1e-4};
  std::vector<PoolPoint> points;
  double best = -1;
  Pool() {
    process.add(row(0.5F), 0.2);
    for (const float x : {0.3F, 0.32F, 0.95F}) points.push_back(at(x));
  }
  static std::vector<float> row(float x, int sketch = 0) {
    return decision_row(sketch, std::array{x});
  }
  [[nodiscard]] PoolPoint at(float x, int sketch = 0) const {
    PoolPoint point{.prior = -1.1, .followed = {row(x, sketch)}};
    process.follow(point.followed);
    return point;
  }
  // Takes the point that is best by its expected improvement out of the pool.
  PoolPoint take() {
    const auto most = std::ranges::max_element(points, {}, [&](const PoolPoint& p) {
      return p.penalty * expected_improvement(best, p.mean(), p.deviation());
    });
    PoolPoint taken = *most;
    points.erase(most);
    return taken;
  }
};

TEST(acquisition, a_believed_mean_becomes_an_observation) {
  Pool pool;
  const PoolPoint chosen = pool.points[0];
  const std::vector<PoolPoint> before = pool.points;
  pool.best = 0;
  believe(chosen, pool.process, pool.best, pool.points);
  EXPECT_EQ(pool.process.size(), 2U);
  const GaussianProcess::Posterior there = pool.process.at(chosen.followed.row);
  EXPECT_NEAR(there.mean, chosen.followed.posterior.mean, 1e-6);
  EXPECT_LT(there.variance, 2e-4);  // no more than the noise
  EXPECT_GT(chosen.followed.posterior.variance, 0.5);
  EXPECT_EQ(pool.best, chosen.mean());
  // A believed point moves no mean. It makes places near it sure, and no place that is far.
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_NEAR(pool.points[i].mean(), before[i].mean(), 1e-6) << i;
  EXPECT_LT(pool.points[1].deviation(), 0.3 * before[1].deviation());
  EXPECT_NEAR(pool.points[2].deviation(), before[2].deviation(), 1e-3);
  // A mean above the best one is no new best.
  pool.best = -5;
  believe(chosen, pool.process, pool.best, pool.points);
  EXPECT_EQ(pool.best, -5);
}

TEST(acquisition, of_believed_points_the_next_one_is_apart) {
  for (const bool believes : {true, false}) {
    Pool pool;
    // The far point is a little worse, so that it is the last one without the rule.
    pool.points[2].prior += 0.2;
    const PoolPoint first = pool.take();
    EXPECT_LT(first.followed.row[1], 0.4F);
    if (believes) believe(first, pool.process, pool.best, pool.points);
    EXPECT_EQ(pool.take().followed.row[1] > 0.9F, believes);
  }
}

// A point with a mean and a deviation of its own.
PoolPoint point_at(float x, double mean, double deviation, int sketch = 0) {
  return {.prior = mean,
          .followed = {.row = Pool::row(x, sketch), .posterior = {0, deviation * deviation}}};
}

TEST(acquisition, a_place_beside_a_pending_point_loses_and_a_far_one_keeps) {
  Pool pool;
  // 0.3 above the best one; the last one is of another sketch.
  pool.points = {point_at(0.3F, -0.7, 0.1), point_at(0.32F, -0.69, 0.1), point_at(0.95F, 0.3, 0.1),
                 point_at(0.3F, -0.7, 0.1, 1)};
  const PoolPoint chosen = pool.points[0];
  penalise(chosen, pool.best, pool.points);
  EXPECT_LT(pool.points[0].penalty, 0.01);  // the place itself: three deviations
  EXPECT_NEAR(pool.points[0].penalty, chance_outside_ball(0, 0.3, 0.1), 1e-6);
  EXPECT_LT(pool.points[1].penalty, 0.05);
  EXPECT_GT(pool.points[1].penalty, pool.points[0].penalty);
  EXPECT_GT(pool.points[2].penalty, 0.99);
  EXPECT_EQ(pool.points[3].penalty, 1);
  // Each pending point counts.
  const double once = pool.points[1].penalty;
  penalise(chosen, pool.best, pool.points);
  EXPECT_NEAR(pool.points[1].penalty, once * once, 1e-12);
}

TEST(acquisition, of_penalised_points_the_next_one_is_apart) {
  for (const bool penalises : {true, false}) {
    Pool pool;
    pool.points = {point_at(0.3F, -1, 0.3), point_at(0.32F, -0.98, 0.3),
                   point_at(0.95F, -0.85, 0.3)};
    pool.best = -1.3;
    const PoolPoint first = pool.take();
    EXPECT_LT(first.followed.row[1], 0.4F);
    if (penalises) penalise(first, pool.best, pool.points);
    EXPECT_EQ(pool.take().followed.row[1] > 0.9F, penalises);
  }
}

}  // namespace
}  // namespace hone::search
