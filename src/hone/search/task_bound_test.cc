#include "hone/search/task_bound.h"

#include <gtest/gtest.h>

#include "hone/compute/dag_testing.h"
#include "hone/task_scheduler.h"

namespace hone::search {
namespace {

target::Target machine() {
  target::Cpu target;
  target.vector_bytes = 32, target.fma_per_cycle = 2, target.ghz = 2, target.cores = 4;
  target.caches = {{1, 32768, 64, 1, 64}, {3, 1 << 25, 64, 4, 8}};
  return {.part = target};
}

trial::Roofline measured_limits() {
  return {.cores = 4,
          .flops = {50e9, 180e9},
          .levels = {{1, 32768, 1, {100e9, 400e9}, {50e9, 200e9}},
                     {0, 0, 4, {10e9, 20e9}, {5e9, 10e9}}}};
}

TaskWork work_of(const compute::Dag& dag, trial::Accuracy accuracy = trial::Accuracy::kDefault) {
  const Result<space::Space> space = space::Space::create(dag, machine(), accuracy);
  EXPECT_TRUE(space.ok());
  return least_work(dag, *space);
}

TEST(task_bound, the_cheapest_algorithm_counts) {
  const compute::Dag product = compute::testing::gemm(64, 64, 64);
  EXPECT_EQ(work_of(product).flops, 2.0 * 64 * 64 * 64);
  EXPECT_EQ(work_of(product).bytes, 3.0 * 64 * 64 * 4);
  // Winograd's algorithm needs far fewer products than the direct one.
  const compute::Dag conv = compute::testing::conv2d({.h = 28, .w = 28, .ic = 64, .oc = 64});
  EXPECT_LT(work_of(conv).flops, 0.7 * compute::flops(conv));
  EXPECT_GT(work_of(conv).flops, 0.1 * compute::flops(conv));
}

TEST(task_bound, of_constants_that_may_be_halved_half_counts) {
  const compute::Dag conv = compute::testing::conv2d({.h = 28, .w = 28, .ic = 64, .oc = 64});
  const double constants = 4.0 * (3 * 3 * 64 * 64 + 64);
  EXPECT_DOUBLE_EQ(work_of(conv).bytes - work_of(conv, trial::Accuracy::kFast).bytes,
                   constants / 2);
}

TEST(task_bound, arithmetic_at_peak_or_bytes_at_a_caches_rate) {
  const TaskBounds one(machine(), 1), all(machine(), 8);
  EXPECT_DOUBLE_EQ(one.seconds({.flops = 128e9, .bytes = 1}), 1);  // 2 x 2 x 2 x 8 lanes x 2 GHz
  EXPECT_DOUBLE_EQ(one.seconds({.flops = 1, .bytes = 32e9}), 1);   // 2 x 8 B x 2 GHz
  EXPECT_DOUBLE_EQ(one.seconds({.flops = 1, .bytes = 32768}), 32768 / 256e9);  // of the first one
  EXPECT_DOUBLE_EQ(all.seconds({.flops = 128e9, .bytes = 1}), 0.25);  // no more than 4 cores
  // Each of four cores has a first-level cache of its own, two share one of the second level.
  target::Target pairs = machine();
  pairs.cpu().caches.insert(pairs.cpu().caches.begin() + 1, {2, 1 << 20, 64, 2, 32});
  const TaskBounds shared(pairs, 4);
  EXPECT_DOUBLE_EQ(shared.seconds({.flops = 1, .bytes = 4 * 32768.0}), 4 * 32768 / (4 * 256e9));
  EXPECT_DOUBLE_EQ(shared.seconds({.flops = 1, .bytes = 2.0 * (1 << 20)}), (2 << 20) / (4 * 128e9));
  EXPECT_DOUBLE_EQ(shared.seconds({.flops = 1, .bytes = 4.0 * (1 << 20)}), (4 << 20) / (4 * 32e9));
}

TEST(task_bound, a_gpu_has_its_units_its_l2_and_its_memory) {
  target::Gpu gpu;
  gpu.sms = 10, gpu.ghz = 2, gpu.fma_per_cycle = 64;
  gpu.l2_bytes = 1 << 20, gpu.l2_bytes_per_cycle = 32, gpu.memory_bandwidth = 100e9;
  target::Target target{.part = gpu};
  const TaskBounds simt(target, 1);  // the description may be exceeded twice
  EXPECT_DOUBLE_EQ(simt.seconds({.flops = 5.12e12, .bytes = 1}), 1);  // 2 x 2 x 64 x 10 x 2 GHz
  EXPECT_DOUBLE_EQ(simt.seconds({.flops = 1, .bytes = 2.0 * (1 << 20)}), (2 << 20) / 1280e9);
  EXPECT_DOUBLE_EQ(simt.seconds({.flops = 1, .bytes = 200e9}), 1);
  target.gpu().matrix = {{16, 8, 8, DType::kF32, DType::kF32, 512}};
  EXPECT_DOUBLE_EQ(TaskBounds(target, 1).seconds({.flops = 40.96e12, .bytes = 1}), 1);
  target.gpu().memory_bandwidth = 0;  // nobody knows it
  EXPECT_LT(TaskBounds(target, 1).seconds({.flops = 1, .bytes = 200e9}), 1e-9);
}

TEST(task_bound, a_roofline_says_what_was_measured) {
  const trial::Roofline roofline = measured_limits();
  ASSERT_TRUE(trial::check(roofline).ok());
  TaskBounds bounds(machine(), 1, roofline);  // 2 % more may be left
  EXPECT_DOUBLE_EQ(bounds.seconds({.flops = 51e9, .bytes = 1}), 1);
  EXPECT_DOUBLE_EQ(bounds.seconds({.flops = 1, .bytes = 32768}), 32768 / 102e9);
  EXPECT_DOUBLE_EQ(bounds.seconds({.flops = 1, .bytes = 10.2e9}), 1);
  EXPECT_DOUBLE_EQ(TaskBounds(machine(), 4, roofline).seconds({.flops = 183.6e9, .bytes = 1}), 1);
  EXPECT_FALSE(bounds.learn({.flops = 51e9, .bytes = 1}, 1.01));
  EXPECT_TRUE(bounds.learn({.flops = 51e9, .bytes = 1}, 0.9));
  EXPECT_DOUBLE_EQ(bounds.seconds({.flops = 51e9, .bytes = 1}), 0.9 / 1.1);  // it said too little
}

TEST(task_bound, at_the_limit_is_who_runs_at_97_percent_of_a_measured_peak) {
  const TaskWork work{.flops = 50e9, .bytes = 1};  // a second at the peak
  for (const double share : {0.90, 0.96, 0.975, 1.0}) {
    TaskBounds bounds(machine(), 1, measured_limits());
    bounds.learn(work, 1 / share);
    TaskScheduler scheduler({{.expected = 1 / share, .bound = bounds.seconds(work)}});
    scheduler.report(0, 1, 1 / share);
    EXPECT_EQ(scheduler.at_limit(0), share > 0.97) << share;
  }
}

// A search came to 1.1 times a rate that the description does not tell, and then, in small steps,
// beyond: where that ends nobody knows, so it is not ended.
TEST(task_bound, without_measured_limits_no_task_is_at_its_limit) {
  const TaskWork work{.flops = 1, .bytes = 64e9};
  TaskBounds bounds(machine(), 1);
  TaskScheduler scheduler({{.expected = 2, .bound = bounds.seconds(work)}});
  for (double best = 1; best > 0.8; best *= 0.99) {
    bounds.learn(work, best);
    scheduler.set_bound(0, bounds.seconds(work));
    scheduler.report(0, 1, best);
    EXPECT_FALSE(scheduler.at_limit(0)) << best;
  }
}

TEST(task_bound, a_measured_rate_above_the_description_replaces_it) {
  TaskBounds bounds(machine(), 1);
  EXPECT_FALSE(bounds.learn({.flops = 128e9, .bytes = 1}, 2));
  EXPECT_DOUBLE_EQ(bounds.seconds({.flops = 128e9, .bytes = 1}), 1);
  EXPECT_TRUE(bounds.learn({.flops = 128e9, .bytes = 1}, 1.05));  // hardly slower
  EXPECT_DOUBLE_EQ(bounds.seconds({.flops = 128e9, .bytes = 1}), 1.05 / 1.1);
  EXPECT_TRUE(bounds.learn({.flops = 128e9, .bytes = 1}, 0.8));
  EXPECT_DOUBLE_EQ(bounds.seconds({.flops = 128e9, .bytes = 1}),
                   0.8 / 1.1);  // a little may be left
  EXPECT_FALSE(bounds.learn({.flops = 128e9, .bytes = 1}, INFINITY));
}

}  // namespace
}  // namespace hone::search
