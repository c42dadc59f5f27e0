// Search strategies and cost models of the caller's own, on a machine without a device, where what
// is longer to run as code is slower.
#include "hone/own_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "hone/commands/null_job_testing.h"
#include "hone/commands/own/own_policy.h"
#include "hone/commands/own/task_state.h"
#include "hone/commands/tune.h"
#include "hone/db/registry.h"
#include "hone/machine/null.h"

namespace hone {
namespace {

struct Fixture {
  machine::NullMachine machine{target::host(), [](const measure::Job& job) {
                                 return 1e-6 *
                                        static_cast<double>(job.executable.code.str().size());
                               }};
  testing::NullJob job;
  graph::Graph graph = testing::network("net", 8);
  TuneOptions options;
  OwnParts parts;
  Fixture() {
    options.compile = job.options();
    job.hooks.runner = nullptr;
    job.hooks.machine = &machine;
    options.search.budget_seconds = 60;
    options.search.max_trials = 24;
  }
  Result<TuneSummary> tune() {
    return hone::tune(graph, job.folder.file("model.so"), options, parts);
  }
  [[nodiscard]] std::vector<ModelTask> tasks() const {
    return model_tasks(graph, options.compile).value();
  }
  [[nodiscard]] int64_t stored() const {
    return std::ssize(*db::open_store(options.compile.records.db).value()->query({}));
  }
};

// Proposes random points, as RandomSearcher does, and remembers what it is told.
struct RandomStrategy : OwnStrategy {
  std::set<uint64_t> asked;
  std::vector<double> times;
  int batch = 0, proposals = 0, observations = 0;
  std::optional<ModelTask> kept;
  std::function<Result<PointRows>(const ModelTask&, int)> instead;

  [[nodiscard]] int batch_size() const override { return batch; }
  Result<PointRows> propose(const ModelTask& task, int count) override {
    ++proposals;
    EXPECT_GE(count, batch);
    asked.insert(task.info().key);
    kept = task;
    if (instead) return instead(task, count);
    return task.sample(count, times.size() + 1);
  }
  Status observe(const ModelTask& task, const PointRows& points,
                 std::span<const double> seconds) override {
    EXPECT_EQ(points.width, task.width());
    EXPECT_EQ(points.size(), seconds.size());
    ++observations;
    times.insert(times.end(), seconds.begin(), seconds.end());
    return ok_status();
  }
};

// Predicts the first estimates.
struct EchoModel : OwnCostModel {
  int predicted = 0, learned = 0;
  Status failure;
  double factor = 1;

  [[nodiscard]] bool learns() const override { return true; }
  Result<std::vector<double>> predict(FeatureBatch batch) override {
    if (!failure.ok()) return failure;
    EXPECT_EQ(batch.rows.values.size(), batch.rows.size() * feature_names("combined").size());
    predicted += static_cast<int>(batch.rows.size());
    for (double& seconds : batch.rows.estimates) seconds *= factor;
    return batch.rows.estimates;
  }
  Result<bool> update(FeatureBatch batch, std::span<const double> seconds) override {
    EXPECT_EQ(batch.rows.size(), seconds.size());
    learned += static_cast<int>(seconds.size());
    return false;
  }
};

TEST(own_search, a_strategy_chooses_what_is_measured) {
  Fixture f;
  RandomStrategy strategy;
  f.parts.strategy = &strategy;
  const Result<TuneSummary> summary = f.tune();
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_TRUE(f.parts.failure.ok()) << f.parts.failure.message();
  EXPECT_GT(summary->trials, 10);
  // On one core, which searches one task at a time, the second one has too little to gain.
  EXPECT_EQ(strategy.asked.size(), target::host().cpu().cores > 1 ? 2U : 1U);
  EXPECT_GE(static_cast<int>(strategy.times.size()), summary->trials - 4);
  EXPECT_EQ(f.stored(), summary->trials);
}

TEST(own_search, a_strategy_may_propose_more_than_is_measured_next) {
  Fixture f;
  RandomStrategy strategy;
  strategy.batch = 64;
  f.parts.strategy = &strategy;
  const Result<TuneSummary> summary = f.tune();
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_TRUE(f.parts.failure.ok()) << f.parts.failure.message();
  EXPECT_GT(summary->trials, 10);
  EXPECT_FALSE(strategy.asked.empty());
  EXPECT_EQ(strategy.proposals, std::ssize(strategy.asked));  // one for each task
  EXPECT_LE(strategy.observations, 2 * strategy.proposals);
  EXPECT_GE(static_cast<int>(strategy.times.size()), summary->trials);  // all are told at the end
  EXPECT_EQ(f.stored(), summary->trials);
}

TEST(own_search, an_error_ends_the_search_and_what_was_measured_stays) {
  Fixture f;
  RandomStrategy strategy;
  strategy.instead = [&](const ModelTask& task, int count) -> Result<PointRows> {
    if (strategy.times.size() > 4) return invalid("enough");
    return task.sample(count, 1);
  };
  f.parts.strategy = &strategy;
  const Result<TuneSummary> summary = f.tune();
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_EQ(f.parts.failure.message(), "enough");
  EXPECT_GT(summary->trials, 4);
  EXPECT_EQ(f.stored(), summary->trials);
  EXPECT_TRUE(file_exists(f.job.folder.file("model.so")));
}

TEST(own_search, no_point_that_waits_is_measured_after_an_error) {
  Fixture f;
  RandomStrategy strategy;
  EchoModel model;
  strategy.batch = 64;
  f.parts.strategy = &strategy;
  f.parts.cost_model = &model;
  model.failure = invalid("no");
  const Result<TuneSummary> summary = f.tune();
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_EQ(f.parts.failure.message(), "no");
  EXPECT_LT(summary->trials, 12);
}

std::string message_of(const std::function<Result<PointRows>(const ModelTask&, int)>& propose) {
  Fixture f;
  f.options.compile.records.use_db = false;
  RandomStrategy strategy;
  strategy.instead = propose;
  f.parts.strategy = &strategy;
  const Result<TuneSummary> summary = f.tune();
  EXPECT_TRUE(summary.ok()) << summary.status().message();
  return summary.ok() ? f.parts.failure.message() : "";
}

TEST(own_search, points_that_do_not_exist_are_named) {
  const auto changed = [](size_t column, int32_t value) {
    return [=](const ModelTask& task, int) -> Result<PointRows> {
      PointRows points = task.default_points();
      points.values.resize(points.width);
      points.values.at(column < points.width ? column : points.width - 1) = value;
      return points;
    };
  };
  EXPECT_NE(message_of(changed(0, 99)).find("point 0: the sketch is 99, expected 0 to"),
            std::string::npos);
  EXPECT_NE(message_of(changed(1, 9999)).find("is 9999, expected 0 to"), std::string::npos);
  const auto narrow = [](const ModelTask&, int) -> Result<PointRows> {
    return PointRows{.width = 2, .values = {0, 0}};
  };
  EXPECT_NE(message_of(narrow).find("points have 2 numbers each, expected"), std::string::npos);
  const auto many = [](const ModelTask& task, int count) -> Result<PointRows> {
    return task.sample(count + 1, 1);
  };
  EXPECT_NE(message_of(many).find("points, expected at most"), std::string::npos);
}

TEST(own_search, a_strategy_that_repeats_itself_ends_its_tasks) {
  Fixture f;
  RandomStrategy strategy;
  strategy.instead = [](const ModelTask& task, int) -> Result<PointRows> {
    return task.default_points();
  };
  f.parts.strategy = &strategy;
  f.options.search.max_trials = 0;
  f.options.search.batch = 64;
  const Result<TuneSummary> summary = f.tune();
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_TRUE(f.parts.failure.ok());
  EXPECT_LT(summary->search_seconds, 30);
}

TEST(own_search, a_strategy_may_ask_the_model_that_guides_the_search) {
  Fixture f;
  RandomStrategy strategy;
  bool asked = false;
  strategy.instead = [&](const ModelTask& task, int count) -> Result<PointRows> {
    const PointRows points = task.sample(count, strategy.times.size());
    HONE_ASSIGN_OR_RETURN(const std::vector<double> guide, task.predict(points));
    HONE_ASSIGN_OR_RETURN(const std::vector<double> named, task.predict(points, "analytic"));
    EXPECT_EQ(guide, named);
    asked = true;
    return points;
  };
  f.parts.strategy = &strategy;
  const Result<TuneSummary> summary = f.tune();
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_TRUE(f.parts.failure.ok() && asked);
  const ModelTask& task = *strategy.kept;  // the search has ended
  const PointRows points = task.sample(4, 1);
  EXPECT_TRUE(task.predict(points, "analytic").ok());
  EXPECT_TRUE(task.features(points).ok());
  EXPECT_EQ(task.predict(points).status().code(), Code::kInvalid);
  EXPECT_EQ(task.measure(points).status().code(), Code::kInvalid);
}

TEST(own_search, a_cost_model_guides_the_search_as_one_of_hone_does) {
  Fixture plain;
  plain.options.search.guide = "analytic";
  const Result<TuneSummary> expected = plain.tune();
  Fixture f;
  EchoModel model;
  f.parts.cost_model = &model;
  const Result<TuneSummary> summary = f.tune();
  ASSERT_TRUE(summary.ok() && expected.ok()) << summary.status().message();
  EXPECT_TRUE(f.parts.failure.ok()) << f.parts.failure.message();
  EXPECT_GT(model.predicted, 100);
  EXPECT_GE(model.learned, summary->trials - 4);
  ASSERT_EQ(summary->compile.tasks.size(), expected->compile.tasks.size());
  for (size_t i = 0; i < summary->compile.tasks.size(); ++i)
    EXPECT_EQ(summary->compile.tasks[i].steps, expected->compile.tasks[i].steps);
}

TEST(own_search, a_cost_model_that_fails_or_predicts_no_time_is_not_asked_any_more) {
  Fixture f;
  EchoModel model;
  f.parts.cost_model = &model;
  for (const auto& [factor, message] :
       std::vector<std::pair<double, std::string>>{{-1, "above 0"}, {NAN, "above 0"}, {1, "no"}}) {
    model.factor = factor;
    if (factor == 1) model.failure = invalid("no");
    f.parts.failure = ok_status();
    const Result<TuneSummary> summary = f.tune();
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    EXPECT_NE(f.parts.failure.message().find(message), std::string::npos);
    EXPECT_TRUE(file_exists(f.job.folder.file("model.so")));
  }
}

TEST(own_search, options_of_named_strategies_and_models_are_refused_beside_own_ones) {
  Fixture f;
  RandomStrategy strategy;
  EchoModel model;
  f.parts.strategy = &strategy;
  f.options.search.strategy = "random";
  EXPECT_EQ(f.tune().status().code(), Code::kInvalid);
  f.options.search.strategy = "mixed";
  f.options.search.mode = "efficient";
  EXPECT_EQ(f.tune().status().code(), Code::kInvalid);
  f.options.search.mode.clear();
  f.parts.strategy = nullptr;
  f.parts.cost_model = &model;
  f.options.search.guide = "analytic";
  EXPECT_EQ(f.tune().status().code(), Code::kInvalid);
}

TEST(model_task, a_space_is_sampled_changed_and_described) {
  const Fixture f;
  const std::vector<ModelTask> tasks = f.tasks();
  ASSERT_GE(tasks.size(), 2U);
  for (const ModelTask& task : tasks) {
    EXPECT_FALSE(task.info().kernel_class.empty());
    const PointRows points = task.sample(16, 7);
    EXPECT_EQ(points.values, task.sample(16, 7).values);
    EXPECT_EQ(points.width, task.width());
    EXPECT_EQ(*task.legal(points), std::vector<uint8_t>(16, 1));
    EXPECT_TRUE(task.mutate(points, 1).ok());
    EXPECT_EQ(task.crossover(points, points, 1)->values, points.values);
    const PointRows near = *task.neighbours(points.row(0));
    EXPECT_EQ(near.size() > 0, task.space_size() > 1);
    const std::string steps = *task.steps(points.row(0));
    EXPECT_EQ(*task.steps(task.locate(steps)->row(0)), steps);
    EXPECT_NE(task.program(points.row(0))->find("kernel"), std::string::npos);
    const FeatureRows rows = *task.features(points);
    EXPECT_EQ(rows.width, feature_names("combined").size());
    for (const float value : rows.values) EXPECT_TRUE(std::isfinite(value));
    EXPECT_EQ(task.predict(points, "analytic")->size(), 16U);
    EXPECT_EQ(task.features(points, "gpu").status().code(), Code::kInvalid);
    EXPECT_EQ(task.predict(points, "abacus").status().code(), Code::kInvalid);
  }
}

TEST(model_task, points_are_measured) {
  const Fixture f;
  const ModelTask task = f.tasks()[0];
  const PointRows points = task.sample(10, 3);
  const Result<std::vector<PointTime>> times = task.measure(points, {.rounds = 2});
  ASSERT_TRUE(times.ok()) << times.status().message();
  ASSERT_EQ(times->size(), 10U);
  for (const PointTime& time : *times) {
    EXPECT_EQ(time.outcome, "ok") << time.message;
    EXPECT_GT(time.seconds, 0);
  }
  EXPECT_EQ(task.measure(points, {.rounds = 0}).status().code(), Code::kInvalid);
  const std::atomic<bool> interrupted = true;
  EXPECT_EQ(task.measure(points, {.interrupted = &interrupted}).status().code(), Code::kCancelled);
}

}  // namespace
}  // namespace hone
