#include "hone/learn/replay.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "hone/base/rng.h"
#include "hone/compute/dag_testing.h"
#include "hone/learn/evaluate.h"
#include "hone/target/target.h"

namespace hone::learn {
namespace {

const target::Target& target_of_tests() {
  static const target::Target kTarget = target::find("x86-64-avx2").value();
  return kTarget;
}

// A task of `count` schedules; the i-th takes i + 1 seconds.
Dataset make_dataset(int threads, int count) {
  Dataset dataset;
  TaskTrials task;
  task.dag = std::make_shared<const compute::Dag>(compute::testing::gemm(32, 64, 32));
  task.key = compute::task_key(*task.dag);
  task.kernel_class = "dense";
  task.models = {"net"};
  task.threads = threads;
  const auto space = space::Space::create(*task.dag, target_of_tests());
  Rng rng(3);
  std::set<std::string> seen;
  while (std::ssize(task.trials) < count) {
    schedule::Steps steps = space->steps(space->sample(rng));
    if (seen.insert(schedule::to_string(steps)).second)
      task.trials.push_back({std::move(steps), static_cast<double>(seen.size())});
  }
  dataset.tasks.push_back(std::move(task));
  return dataset;
}

Evaluation judged(const Replay& replay) {
  return evaluate(replay.dataset, target_of_tests(), *replay.model).value();
}

TEST(replay, ranks_as_the_other_device_did) {
  const Dataset dataset = make_dataset(2, 20);
  Dataset other = make_dataset(1, 20);
  for (MeasuredSteps& trial : other.tasks[0].trials) trial.seconds *= 3;
  const Replay same = make_replay(dataset, other, true);
  EXPECT_EQ(same.coverage.tasks, 1);
  EXPECT_EQ(same.coverage.schedules, 20);
  EXPECT_EQ(judged(same).all.pair_accuracy, 1);
  EXPECT_EQ(judged(same).all.top1, 1);
  for (MeasuredSteps& trial : other.tasks[0].trials) trial.seconds = 1 / trial.seconds;
  const Evaluation reversed = judged(make_replay(dataset, other, true));
  EXPECT_EQ(reversed.all.pair_accuracy, 0);
  EXPECT_DOUBLE_EQ(reversed.all.top1, 1.0 / 20);
  ASSERT_EQ(reversed.networks.size(), 1U);
  EXPECT_DOUBLE_EQ(reversed.networks[0].top5(), 1.0 / 16);
}

// Knows the times with two threads; with another number all take a second.
class TwoThreads : public cost::CostModel {
 public:
  explicit TwoThreads(const TaskTrials& task) {
    for (const MeasuredSteps& trial : task.trials)
      seconds_[schedule::hash(trial.steps)] = trial.seconds;
  }
  [[nodiscard]] std::string_view name() const override { return "two"; }
  [[nodiscard]] Result<std::vector<double>> predict(
      std::span<const cost::Query> queries) const override {
    std::vector<double> seconds;
    for (const cost::Query& query : queries)
      seconds.push_back(query.threads == 2 ? seconds_.at(schedule::hash(query.candidate->steps))
                                           : 1);
    return seconds;
  }
  [[nodiscard]] Status update(std::span<const cost::Observation>) override { return ok_status(); }

 private:
  std::map<uint64_t, double> seconds_;
};

TEST(replay, is_translated_by_what_a_model_says_of_both) {
  const Dataset dataset = make_dataset(2, 20);
  Dataset other = make_dataset(1, 20);
  for (MeasuredSteps& trial : other.tasks[0].trials) trial.seconds = 1;
  EXPECT_EQ(judged(make_replay(dataset, other, true)).all.pair_accuracy, 0.5);
  const TwoThreads model(dataset.tasks[0]);
  const Translation translation = {&model, &target_of_tests(), 1};
  EXPECT_EQ(judged(make_replay(dataset, other, true, translation)).all.pair_accuracy, 1);
  // With as many threads there as here, the measured times count more than the predicted ones.
  for (size_t i = 0; i < 20; ++i)
    other.tasks[0].trials[i].seconds = 1 / dataset.tasks[0].trials[i].seconds;
  const Translation same = {&model, &target_of_tests(), 0};
  EXPECT_EQ(judged(make_replay(dataset, other, true, same)).all.pair_accuracy, 0);
}

TEST(replay, judges_by_what_ran_on_both) {
  const Dataset dataset = make_dataset(2, 20);
  Dataset other = make_dataset(1, 30);
  other.tasks[0].trials.erase(other.tasks[0].trials.begin() + 3,
                              other.tasks[0].trials.begin() + 10);
  const Replay replay = make_replay(dataset, other, true);
  EXPECT_EQ(replay.coverage.schedules, 13);
  EXPECT_EQ(replay.coverage.all_schedules, 20);
  EXPECT_EQ(judged(replay).all.trials, 13);
  // Too few in common to judge by.
  other.tasks[0].trials.resize(5);
  EXPECT_EQ(make_replay(dataset, other, true).coverage.tasks, 0);
  EXPECT_EQ(make_replay(dataset, other, true).coverage.all_tasks, 1);
  // Times with another number of threads count only if they are asked for.
  EXPECT_EQ(make_replay(dataset, make_dataset(1, 20), false).coverage.schedules, 0);
  EXPECT_EQ(make_replay(dataset, make_dataset(2, 20), false).coverage.schedules, 20);
}

}  // namespace
}  // namespace hone::learn
