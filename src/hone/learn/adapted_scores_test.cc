#include "hone/learn/adapted_scores.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "hone/base/rng.h"
#include "hone/compute/dag_testing.h"
#include "hone/target/target.h"

namespace hone::learn {
namespace {

// Distinct schedules of a task, the i-th of which takes i + 1 milliseconds.
Dataset made_up(int count) {
  const target::Target target = target::find("x86-64-avx2").value();
  TaskTrials task;
  task.key = 5;
  task.dag = std::make_shared<const compute::Dag>(compute::testing::gemm(32, 64, 32));
  const auto space = space::Space::create(*task.dag, target).value();
  Rng rng(7);
  std::set<std::string> seen;
  while (std::ssize(seen) < count) {
    schedule::Steps steps = space.steps(space.sample(rng));
    if (!space::make_candidate(*task.dag, steps).ok() ||
        !seen.insert(schedule::to_string(steps)).second)
      continue;
    task.trials.push_back({std::move(steps), 1e-3 * static_cast<double>(seen.size())});
  }
  Dataset dataset;
  dataset.tasks.push_back(std::move(task));
  return dataset;
}

// Knows what it was told, and says of everything, once it was told enough, what is right.
class Pupil : public cost::CostModel {
 public:
  Pupil(const Dataset& truth, int enough) : enough_(enough) {
    for (const MeasuredSteps& trial : truth.tasks[0].trials)
      seconds_[schedule::to_string(trial.steps)] = trial.seconds;
  }
  [[nodiscard]] std::string_view name() const override { return "pupil"; }
  [[nodiscard]] Result<std::vector<double>> predict(
      std::span<const cost::Query> queries) const override {
    std::vector<double> predicted;
    for (const cost::Query& query : queries) {
      const std::string steps = schedule::to_string(query.candidate->steps);
      EXPECT_FALSE(told_.contains(steps)) << "judged by what it was told";
      predicted.push_back(std::ssize(told_) >= enough_ ? seconds_.at(steps) : 1);
    }
    return predicted;
  }
  [[nodiscard]] Status update(std::span<const cost::Observation> observations) override {
    for (const cost::Observation& one : observations) {
      const std::string steps = schedule::to_string(one.query.candidate->steps);
      EXPECT_EQ(one.seconds, seconds_.at(steps));
      told_.insert(steps);
    }
    return ok_status();
  }
  [[nodiscard]] bool learns() const override { return enough_ < 100; }

 private:
  int enough_;
  std::map<std::string, double> seconds_;
  std::set<std::string> told_;
};

TEST(adapted_scores, are_of_what_a_model_was_not_told) {
  const Dataset dataset = made_up(30);
  const target::Target target = target::find("x86-64-avx2").value();
  const auto make = [&](int enough) {
    return [&dataset, enough]() -> Result<std::unique_ptr<cost::CostModel>> {
      return std::unique_ptr<cost::CostModel>(std::make_unique<Pupil>(dataset, enough));
    };
  };
  const std::vector<int> samples = {0, 9, 10, 20};
  const auto scores = adapted_scores(dataset, target, samples, make(10));
  ASSERT_TRUE(scores.ok()) << scores.status().message();
  ASSERT_EQ(scores->size(), 4U);
  for (const AdaptedScore& score : *scores) {
    EXPECT_EQ(score.tasks, 1);
    EXPECT_EQ(score.schedules, 10);
    const bool knows = score.samples >= 10;
    EXPECT_EQ(score.mse == 0, knows) << score.samples;
    EXPECT_EQ(score.top_mse == 0, knows) << score.samples;
    EXPECT_EQ(score.pair_accuracy, knows ? 1 : 0.5);
  }
  // Who says that all are equally fast is less wrong about those that are.
  EXPECT_LT((*scores)[0].top_mse, (*scores)[0].mse);
  EXPECT_EQ(adapted_scores(dataset, target, std::vector<int>{23}, make(10)).status().message(),
            "no task has the 31 schedules that 23 samples and 8 to judge by take, but 30 at most");
  EXPECT_EQ(adapted_scores(dataset, target, samples, make(100)).status().message(),
            "the cost model pupil does not learn from measurements");
}

// Knows one task alone.
class Specialist final : public Pupil {
 public:
  Specialist(const Dataset& truth, uint64_t task) : Pupil(truth, 10), task_(task) {}
  [[nodiscard]] Result<std::vector<double>> predict(
      std::span<const cost::Query> queries) const override {
    if (queries[0].task != task_) return error(Code::kUnsupported, "unknown");
    return Pupil::predict(queries);
  }

 private:
  uint64_t task_;
};

TEST(adapted_scores, tasks_that_the_model_refuses_are_counted_and_left_out) {
  Dataset dataset = made_up(30);
  const target::Target target = target::find("x86-64-avx2").value();
  const auto make = [&]() -> Result<std::unique_ptr<cost::CostModel>> {
    return std::unique_ptr<cost::CostModel>(std::make_unique<Specialist>(dataset, 5));
  };
  const std::vector<int> samples = {0, 10};
  const auto alone = adapted_scores(dataset, target, samples, make).value();
  dataset.tasks.push_back(dataset.tasks[0]);
  dataset.tasks.back().key = 6;
  dataset.tasks.back().kernel_class = "matmul";
  const auto scores = adapted_scores(dataset, target, samples, make).value();
  for (size_t i = 0; i < scores.size(); ++i) {
    EXPECT_EQ(alone[i].refused, 0);
    EXPECT_EQ(scores[i].refused, 1);
    EXPECT_EQ(scores[i].tasks, 1);
    EXPECT_EQ(scores[i].mse, alone[i].mse);
  }
  dataset.tasks.erase(dataset.tasks.begin());
  EXPECT_EQ(adapted_scores(dataset, target, samples, make).status().message(), "matmul: unknown");
}

}  // namespace
}  // namespace hone::learn
