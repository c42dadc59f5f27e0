#include "hone/session/choose_tasks.h"

#include <gtest/gtest.h>

#include "hone/compute/dag_testing.h"
#include "hone/cost/registry.h"

namespace hone {
namespace {

using namespace compute::testing;

class ChooseTasks : public ::testing::Test {
 protected:
  ChooseContext context(Measured measured = {}, Decisions decided = {}) {
    return {tasks_,
            target_,
            *cost_,
            2,
            trial::Accuracy::kDefault,
            1,
            std::move(measured),
            std::move(decided)};
  }
  uint64_t key(const compute::Dag& dag) const { return compute::task_key(dag); }

  target::Target target_ = target::host();
  TaskTable tasks_{target_};
  std::unique_ptr<cost::CostModel> cost_ = *cost::make_model("analytic");
  compute::Dag joined_ = separable(28, 28, 32, 16), first_ = depthwise(28, 28, 32, 1),
               second_ = conv2d({.h = 28, .w = 28, .ic = 32, .oc = 16, .kernel = 1, .pad = 0});
};

TEST_F(ChooseTasks, measured_times_decide_where_all_are_known) {
  std::map<uint64_t, double> times = {
      {key(joined_), 9e-6}, {key(first_), 5e-6}, {key(second_), 5e-6}};
  const Measured measured = [&](uint64_t task) -> std::optional<double> {
    const auto time = times.find(task);
    return time == times.end() ? std::nullopt : std::optional(time->second);
  };
  TaskChooser chooser(context(measured));
  EXPECT_TRUE(chooser.join(joined_, first_, second_));
  times[key(joined_)] = 11e-6;
  EXPECT_FALSE(chooser.join(joined_, first_, second_));
  EXPECT_TRUE(chooser.alternatives().empty());
}

TEST_F(ChooseTasks, the_road_not_taken_is_measured_where_predictions_are_close) {
  TaskChooser chooser(context());
  const bool joins = chooser.join(joined_, first_, second_);
  (void)chooser.join(joined_, first_, second_);  // it occurs twice
  const Decision decision = chooser.decisions().at(key(joined_));
  EXPECT_EQ(decision.joins, joins);
  ASSERT_EQ(chooser.alternatives().size(), !decision.doubtful ? 0U : joins ? 2U : 1U);
  for (const Alternative& other : chooser.alternatives()) {
    EXPECT_EQ(other.multiplicity, 2);
    EXPECT_EQ(other.task->key() == key(joined_), !joins);
  }
}

TEST_F(ChooseTasks, what_was_decided_holds_unless_it_was_doubtful) {
  const Measured against = [&](uint64_t task) {
    return std::optional(task == key(joined_) ? 1.0 : 0.1);
  };
  TaskChooser sure(context(against, {{key(joined_), {.joins = true}}}));
  EXPECT_TRUE(sure.join(joined_, first_, second_));
  TaskChooser doubtful(context(against, {{key(joined_), {.joins = true, .doubtful = true}}}));
  EXPECT_FALSE(doubtful.join(joined_, first_, second_));
}

}  // namespace
}  // namespace hone
