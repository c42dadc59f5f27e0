#include "hone/task_scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hone/base/rng.h"

namespace hone::search {
namespace {

// A task whose best time falls from `start` towards `floor` like 1 / (seconds spent).
struct Simulated {
  double multiplicity, start, floor, pace;
  [[nodiscard]] double best(double spent) const {
    return floor + (start - floor) / (1 + spent / pace);
  }
};

std::vector<double> simulate(const std::vector<Simulated>& tasks, double budget,
                             double batch = 0.5) {
  std::vector<ScheduledTask> scheduled;
  for (const Simulated& task : tasks)
    scheduled.push_back({task.multiplicity, task.start, task.floor * 0.7});
  TaskScheduler scheduler(scheduled);
  std::vector<double> spent(tasks.size(), 0);
  for (double now = 0; now < budget; now += batch) {
    const int task = scheduler.next();
    if (task < 0) break;
    scheduler.start(task);
    spent[task] += batch;
    scheduler.report(task, batch, tasks[task].best(spent[task]));
  }
  return spent;
}

double latency(const std::vector<Simulated>& tasks, const std::vector<double>& spent) {
  double sum = 0;
  for (size_t i = 0; i < tasks.size(); ++i) sum += tasks[i].multiplicity * tasks[i].best(spent[i]);
  return sum;
}

TEST(task_scheduler, warms_up_every_task_that_matters_largest_share_first) {
  TaskScheduler scheduler({{1, 1e-3, 0}, {4, 2e-3, 0}, {1, 1e-9, 0}, {2, 3e-3, 0}});
  std::vector<int> order;
  for (int i = 0; i < 3; ++i) {
    order.push_back(scheduler.next());
    scheduler.start(order.back());
    scheduler.report(order.back(), 0.1, 1e-3);
  }
  EXPECT_EQ(order, (std::vector<int>{1, 3, 0}));
  EXPECT_NE(scheduler.next(), 2);  // too small to matter
}

TEST(task_scheduler, prefers_the_task_that_occurs_more_often) {
  const std::vector<double> spent = simulate({{1, 4e-3, 1e-3, 1}, {8, 4e-3, 1e-3, 1}}, 20);
  EXPECT_GT(spent[1], 1.5 * spent[0]);
  EXPECT_GT(spent[0], 0);
}

TEST(task_scheduler, leaves_a_task_that_reached_its_bound) {
  const std::vector<double> spent = simulate({{1, 2.001e-3, 2e-3, 1}, {1, 6e-3, 1e-3, 5}}, 20);
  EXPECT_GT(spent[1], 2 * spent[0]);
}

TEST(task_scheduler, beats_an_even_split) {
  const std::vector<Simulated> tasks = {
      {1, 1e-3, 4e-4, 0.5}, {3, 8e-3, 2e-3, 4}, {1, 5e-4, 4.9e-4, 1}, {2, 3e-3, 1e-3, 2}};
  const std::vector<double> spent = simulate(tasks, 20);
  const std::vector<double> even(tasks.size(), 5);
  EXPECT_LT(latency(tasks, spent), latency(tasks, even));
  EXPECT_NEAR(std::accumulate(spent.begin(), spent.end(), 0.0), 20, 1e-9);
}

TEST(task_scheduler, a_task_at_its_limit_gets_nothing_more) {
  TaskScheduler scheduler({{1, 4e-3, 1e-3}, {1, 4e-3, 1e-3}});
  for (int i = 0; i < 2; ++i) {
    const int task = scheduler.next();
    scheduler.start(task);
    scheduler.report(task, 1, task == 0 ? 1.02e-3 : 1.5e-3);
  }
  EXPECT_TRUE(scheduler.at_limit(0));
  EXPECT_EQ(scheduler.gain(0), 0);
  EXPECT_FALSE(scheduler.at_limit(1));
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(scheduler.next(), 1);
    scheduler.report(1, 1, 1.5e-3);
  }
  scheduler.report(1, 1, 1e-3);
  EXPECT_EQ(scheduler.next(), -1);
  // A cheaper algorithm or a faster clock than was thought of: there is something to gain again.
  scheduler.set_bound(0, 5e-4);
  EXPECT_EQ(scheduler.next(), 0);
}

TEST(task_scheduler, expects_of_a_task_what_similar_ones_reached) {
  const auto gain = [](int family_of_good) {
    TaskScheduler scheduler({{1, 4e-3, 1e-3, 1}, {1, 4e-3, 1e-3, family_of_good}});
    scheduler.report(0, 1, 4e-3);
    scheduler.report(1, 1, 1.1e-3);
    return scheduler.gain(0);
  };
  EXPECT_GT(gain(1), 1.3 * gain(2));
}

TEST(task_scheduler, gains_are_expected_of_late_ones_less) {
  TaskScheduler scheduler({{1, 4e-3, 1e-3}, {1, 4e-3, 1e-3}});
  for (int i = 0; i < 10; ++i) {
    scheduler.report(0, 1, i == 0 ? 2e-3 : 1.9e-3);
    scheduler.report(1, 1, i < 6 ? 2e-3 : 1.9e-3);
  }
  EXPECT_GT(scheduler.gain(1), 1.5 * scheduler.gain(0));
  EXPECT_NEAR(scheduler.gain_in(1, 1e-6), 1e-6 * scheduler.gain(1),
              1e-3 * 1e-6 * scheduler.gain(1));
  double last = 0;
  for (const double seconds : {1.0, 10.0, 100.0, 1e9}) {
    const double gain = scheduler.gain_in(1, seconds);
    EXPECT_GT(gain, last);
    EXPECT_LT(gain, scheduler.gain(1) * seconds);
    EXPECT_LE(gain, 0.9e-3 + 1e-12);  // no more than the gap
    last = gain;
  }
}

// Tasks of all sorts: steep and flat, near and far from their bounds, those that stop gaining.
TEST(task_scheduler, beats_taking_turns_on_random_models) {
  double product = 1;
  constexpr int kModels = 40;
  for (uint64_t seed = 1; seed <= kModels; ++seed) {
    Rng rng(seed);
    std::vector<Simulated> tasks;
    for (int i = 0; i < 12; ++i) {
      const double start = std::exp(std::log(1e-4) + 4 * rng.uniform());
      tasks.push_back({static_cast<double>(rng.between(1, 6)), start,
                       start * (0.2 + 0.75 * rng.uniform()), 0.2 + 4 * rng.uniform()});
    }
    const double budget = 30;
    const std::vector<double> even(tasks.size(), budget / static_cast<double>(tasks.size()));
    const double ratio = latency(tasks, simulate(tasks, budget)) / latency(tasks, even);
    EXPECT_LT(ratio, 1.0) << "seed " << seed;
    product *= ratio;
  }
  EXPECT_LT(std::pow(product, 1.0 / kModels), 0.96);
}

TEST(task_scheduler, ends_when_every_task_is_finished) {
  TaskScheduler scheduler({{1, 1e-3, 0}, {1, 1e-3, 0}});
  scheduler.finish(0);
  EXPECT_EQ(scheduler.next(), 1);
  scheduler.finish(1);
  EXPECT_EQ(scheduler.next(), -1);
}

TEST(task_scheduler, counts_on_batches_under_way) {
  TaskScheduler scheduler({{1, 1e-3, 0}, {1, 1e-3, 0}});
  const int first = scheduler.next();
  scheduler.start(first);
  EXPECT_NE(scheduler.next(), first);
}

TEST(task_scheduler, a_lost_batch_leaves_the_task_as_it_was) {
  TaskScheduler scheduler({{1, 2e-3, 0}, {1, 1e-3, 0}});
  const double before = scheduler.gain(0);
  const int first = scheduler.next();
  scheduler.start(first);
  EXPECT_NE(scheduler.next(), first);
  scheduler.withdraw(first);
  EXPECT_EQ(scheduler.gain(first), before);
  EXPECT_EQ(scheduler.next(), first);
  EXPECT_EQ(scheduler.spent(first), 0);
}

}  // namespace
}  // namespace hone::search
