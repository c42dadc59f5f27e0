#include "hone/search/task_scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

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

}  // namespace
}  // namespace hone::search
