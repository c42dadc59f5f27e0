#include "hone/commands/tune_mode.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <set>

#include "hone/base/file.h"
#include "hone/commands/tune.h"
#include "hone/graph/test_model.h"
#include "hone/search/prediction.h"
#include "hone/space/portable_point.h"
#include "hone/space/subspace.h"

namespace hone {
namespace {

TEST(tune_mode, a_mode_that_contradicts_options_is_an_error) {
  EXPECT_EQ(tune_mode({}).value(), TuneMode::kUsual);
  EXPECT_EQ(tune_mode({.mode = "quality"}).value(), TuneMode::kQuality);
  EXPECT_EQ(tune_mode({.mode = "efficient"}).value(), TuneMode::kEfficient);
  EXPECT_NE(tune_mode({.mode = "fast"}).status().message().find("efficient or quality"),
            std::string::npos);
  EXPECT_FALSE(tune_mode({.mode = "efficient", .overlap = true}).ok());
  EXPECT_FALSE(tune_mode({.mode = "efficient", .adapt = "head"}).ok());
  EXPECT_FALSE(tune_mode({.mode = "efficient", .max_trials = 5}).ok());
  EXPECT_FALSE(tune_mode({.mode = "efficient", .filter = "static.model"}).ok());
}

TEST(tune_mode, quality_sets_the_weights_of_dqn_unless_they_are_given) {
  const auto strategy = [](const std::string& text, TuneMode mode) {
    return strategy_of({.strategy = text}, mode);
  };
  EXPECT_EQ(strategy("dqn", TuneMode::kQuality), "dqn:phi1=0.45,phi2=0.35,phi3=0.2");
  EXPECT_EQ(strategy("dqn:walks=2", TuneMode::kQuality),
            "dqn:walks=2,phi1=0.45,phi2=0.35,phi3=0.2");
  EXPECT_EQ(strategy("dqn:phi1=1", TuneMode::kQuality), "dqn:phi1=1");
  EXPECT_EQ(strategy("dqn", TuneMode::kUsual), "dqn");
  EXPECT_EQ(strategy("mixed", TuneMode::kQuality), "mixed");
  EXPECT_TRUE(search::make_policy(strategy("dqn", TuneMode::kQuality)).ok());
}

graph::Graph one_product() {
  Rng rng(5);
  graph::TestModel model;
  model.input("x", {64, 128});
  model.constant("w", graph::random_tensor({128, 256}, rng));
  model.node("MatMul", {"x", "w"}, {"y"}).output("y");
  return model.graph();
}

// A product whose schedule was chosen without measuring.
struct OneStep {
  CompileOptions options = [] {
    CompileOptions made;
    made.records.use_db = false;
    made.target = {.device = "x86-64-avx2", .threads = 1};
    made.advanced.cost = "analytic";
    return made;
  }();
  const std::unique_ptr<Session> session = Session::open(options).value();
  Untuned untuned = make_untuned(*session, one_product(), options).value();

  Status take(const std::string& strategy) {
    return take_best_of_a_step(untuned, *search::make_policy(strategy).value(), options);
  }
};

// The step never takes what seems slower than what was chosen without it, and finds something
// faster where that was the default.
TEST(tune_mode, a_step_takes_only_what_seems_faster) {
  OneStep step;
  Untuned& untuned = step.untuned;
  const std::unique_ptr<search::Policy> policy = search::make_policy("dqn").value();
  const schedule::Steps chosen = untuned.schedules[0];
  ASSERT_TRUE(take_best_of_a_step(untuned, *policy, step.options).ok());
  const double after = predicted_seconds(untuned.model, 0, untuned.schedules[0]).value();
  EXPECT_LE(after, predicted_seconds(untuned.model, 0, chosen).value());
  EXPECT_NE(policy->save().value(), "");  // it learned from the step

  const Result<space::Space>& space = untuned.model.space(0);
  untuned.schedules[0] = space->steps(space->default_point());
  const double before = predicted_seconds(untuned.model, 0, untuned.schedules[0]).value();
  ASSERT_TRUE(step.take("mixed").ok());
  EXPECT_LT(predicted_seconds(untuned.model, 0, untuned.schedules[0]).value(), before);
  EXPECT_EQ(untuned.model.summaries[0].source, "predicted");
}

// A step keeps the decisions of the default that it may not move.
TEST(tune_mode, a_step_moves_what_it_may) {
  OneStep step;
  Untuned& untuned = step.untuned;
  const Result<space::Space>& space = untuned.model.space(0);
  const space::Point usual = space->default_point();
  int changed = 0;
  const std::vector<std::string> roles = space::open_roles(*space);
  for (const std::string& fixed : roles) {
    std::set<std::string, std::less<>> movable(roles.begin(), roles.end());
    movable.erase(fixed);
    untuned.schedules[0] = space->steps(usual);
    ASSERT_TRUE(step.take(fmt::format("mixed:movable=roles:{}", fmt::join(movable, "+"))).ok());
    const std::optional<space::Point> found =
        space::exact_point(std::nullopt, untuned.schedules[0], *space);
    ASSERT_TRUE(found);
    const space::Subspace part(*space, {.roles = movable, .bases = {usual}});
    EXPECT_EQ(part.project(*found), *found) << fixed;
    changed += *found == usual ? 0 : 1;
  }
  EXPECT_GT(changed, 0);

  const Status status = step.take("random:movable=roles:nothing");
  EXPECT_NE(status.message().find("has the role 'nothing'"), std::string::npos) << status.message();
}

// The population of a single kernel is predicted by all threads of the session, and what a step
// chooses does not depend on how many there are.
TEST(tune_mode, a_step_predicts_on_the_sessions_threads_and_chooses_as_one_thread_does) {
  for (const std::string strategy : {"es", "evolutionary", "mixed", "ppo", "bayes"}) {
    OneStep step;
    const Result<space::Space>& space = step.untuned.model.space(0);
    search::SearchTask task = search_task(step.untuned.model, 0, *space, 7);
    EXPECT_EQ(task.pool, &step.session->pool());
    EXPECT_EQ(task.family, "matmul");
    const auto proposals = [&](ThreadPool* pool) {
      task.pool = pool;
      const auto policy = search::make_policy(strategy).value();
      return policy->make_searcher(task)->propose(kEfficientStep);
    };
    const std::vector<space::Point> alone = proposals(nullptr);
    EXPECT_GT(alone.size(), 10U);
    ThreadPool one(1), several(5);
    EXPECT_EQ(proposals(&one), alone) << strategy;
    EXPECT_EQ(proposals(&several), alone) << strategy;
    // Several kernels at a time, whose predictions are divided among the same threads.
    std::vector<std::vector<space::Point>> nested(3);
    several.parallel_for(3, [&](int64_t i) {
      const auto policy = search::make_policy(strategy).value();
      nested[static_cast<size_t>(i)] = policy->make_searcher(task)->propose(kEfficientStep);
    });
    for (const std::vector<space::Point>& one_of : nested) EXPECT_EQ(one_of, alone) << strategy;
  }
}

TEST(tune_mode, efficient_measures_nothing_and_says_what_the_seconds_went_to) {
  const TempDir folder = std::move(TempDir::create()).value();
  TuneOptions options;
  options.compile.records.use_db = false;
  options.compile.target.threads = 1;
  options.compile.advanced.cost = "analytic";
  options.search.mode = "efficient";
  const Result<TuneSummary> summary = tune(one_product(), folder.file("model.so"), options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_EQ(summary->trials, 0);
  const TuneSeconds& spent = summary->spent;
  EXPECT_EQ(spent.measuring, 0);
  EXPECT_GT(spent.compiling, 0);
  EXPECT_GT(spent.choosing, 0);
  EXPECT_GT(spent.packing, 0);
  const double all = spent.compiling + spent.choosing + spent.packing + spent.checking +
                     spent.waiting + spent.other;
  EXPECT_NEAR(all, summary->compile.seconds, 0.01 + 0.01 * summary->compile.seconds);
}

}  // namespace
}  // namespace hone
