#include "hone/search/guide.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "hone/search/prediction.h"
#include "hone/search/searcher_testing.h"

namespace hone::search {
namespace {

// Prefers deep loop nests, and after it has heard of something, flat ones.
class FickleModel : public testing::BlindModel {
 public:
  FickleModel() : BlindModel(0.1) {}
  [[nodiscard]] Result<std::vector<double>> predict(
      std::span<const cost::Query> queries) const override {
    Result<std::vector<double>> seconds = BlindModel::predict(queries);
    for (double& s : *seconds) s = revision_ > 0 ? 1e-6 / s : s;
    return seconds;
  }
  [[nodiscard]] Status update(std::span<const cost::Observation>) override {
    ++revision_;
    return ok_status();
  }
  [[nodiscard]] uint64_t revision() const override { return revision_; }

 private:
  uint64_t revision_ = 0;
};

// Fails if it is asked about few at a time.
class FailingModel : public testing::BlindModel {
 public:
  FailingModel() : BlindModel(0.1) {}
  [[nodiscard]] Result<std::vector<double>> predict(
      std::span<const cost::Query> queries) const override {
    if (queries.size() < 32) return invalid("too few");
    return BlindModel::predict(queries);
  }
};

TEST(prediction, is_the_same_by_several_threads) {
  const testing::Fixture f;
  SearchTask task = f.task(1);
  Rng rng(1);
  std::vector<space::Point> points;
  for (int i = 0; i < 150; ++i) points.push_back(f.space->sample(rng));
  const std::vector<double> alone = predict_log_seconds(task, points);
  ThreadPool pool(3);
  task.pool = &pool;
  EXPECT_EQ(predict_log_seconds(task, points), alone);
  // What a model cannot say of some, it says of none.
  const FailingModel failing;
  task.model = &failing;
  const std::vector<double> failed = predict_log_seconds(task, points);
  for (const double log : failed) EXPECT_TRUE(log == 0 || std::isinf(log)) << log;
}

// Finds out while it predicts, at a deep loop nest, that it cannot judge the task.
class SurprisedModel : public testing::BlindModel {
 public:
  SurprisedModel() : BlindModel(0.1) {}
  [[nodiscard]] Result<std::vector<double>> predict(
      std::span<const cost::Query> queries) const override {
    for (const cost::Query& query : queries) {
      if (query.candidate->state.stages.back().order.size() >= 7) left_ = true;
    }
    Result<std::vector<double>> seconds = BlindModel::predict(queries);
    for (double& s : *seconds) s = left_ ? 1e-6 / s : s;
    return seconds;
  }
  [[nodiscard]] uint64_t revision() const override { return left_ ? 1 : 0; }

 private:
  mutable std::atomic<bool> left_ = false;
};

// What was predicted before is not mixed with what another model says.
TEST(prediction, is_by_one_model_alone) {
  const testing::Fixture f;
  Rng rng(1);
  std::vector<space::Point> points;
  for (int i = 0; i < 150; ++i) points.push_back(f.space->sample(rng));
  SearchTask task = f.task(1);
  const auto expect_other = [&](const space::Point& point, double log) {
    const testing::BlindModel blind(0.1);
    task.model = &blind;
    EXPECT_NEAR(log, std::log(1e-6) - predict_log_seconds(task, {&point, 1})[0], 1e-9);
  };
  const SurprisedModel alone, guided;
  task.model = &alone;
  const std::vector<double> logs = predict_log_seconds(task, points);
  ASSERT_EQ(alone.revision(), 1U) << "no schedule has so many loops";
  for (size_t i = 0; i < points.size(); ++i) {
    if (std::isfinite(logs[i])) expect_other(points[i], logs[i]);
  }
  task.model = &guided;
  Guide guide(task);
  const std::vector<Scored> ranked = guide.rank(points);
  ASSERT_EQ(guided.revision(), 1U);
  for (const Scored& scored : ranked) expect_other(scored.point, scored.log_seconds);
}

TEST(guide, asks_again_when_the_model_has_learned) {
  const testing::Fixture f;
  FickleModel model;
  SearchTask task = f.task(1);
  task.model = &model;
  Guide guide(task);
  std::vector<space::Point> points;
  for (int i = 0; i < 50; ++i) points.push_back(f.space->sample(guide.rng()));
  const std::vector<Scored> before = guide.rank(points);
  ASSERT_GT(before.size(), 10U);
  ASSERT_LT(before.front().log_seconds, before.back().log_seconds);
  ASSERT_TRUE(model.update({}).ok());
  const std::vector<Scored> after = guide.rank(points);
  ASSERT_EQ(after.size(), before.size());
  for (const Scored& then : before) {
    const auto now = std::find_if(after.begin(), after.end(),
                                  [&](const Scored& s) { return s.point == then.point; });
    ASSERT_NE(now, after.end());
    EXPECT_NEAR(now->log_seconds, std::log(1e-6) - then.log_seconds, 1e-9);
  }
}

TEST(guide, believes_the_last_time_of_a_point) {
  const testing::Fixture f;
  Guide guide(f.task(1));
  const std::vector<space::Point> points = {f.space->default_point(), f.space->sample(guide.rng())};
  const auto observe = [&](size_t i, double seconds) {
    guide.observe({&points[i], 1}, {&seconds, 1});
    EXPECT_EQ(*guide.seconds_of(points[i]), seconds);
  };
  observe(0, 1e-3), observe(1, 2e-3), observe(0, 3e-3);
  ASSERT_EQ(guide.measured().size(), 2U);
  EXPECT_EQ(guide.measured().front().point, points[1]);
  EXPECT_EQ(guide.measured().back().seconds, 3e-3);
  observe(0, INFINITY);
  ASSERT_EQ(guide.measured().size(), 1U);
  EXPECT_EQ(guide.measured().front().point, points[1]);
}

TEST(guide, corrects_what_the_model_says_now) {
  const testing::Fixture f;
  FickleModel model;
  SearchTask task = f.task(1);
  task.model = &model;
  Guide guide(task);
  std::vector<space::Point> points;
  std::vector<double> seconds;
  for (int i = 0; i < 40; ++i) points.push_back(f.space->sample(guide.rng()));
  for (const space::Point& point : points) seconds.push_back(f.seconds(point));
  guide.observe(points, seconds);
  guide.fit();
  ASSERT_TRUE(model.update({}).ok());
  double error = 0;
  const std::vector<Scored> ranked = guide.rank(points);
  for (const Scored& scored : ranked)
    error += std::abs(scored.log_seconds - std::log(f.seconds(scored.point)));
  // The model alone is off by a factor of about ten.
  EXPECT_LT(error / static_cast<double>(ranked.size()), 0.1);
}

}  // namespace
}  // namespace hone::search
