#include "hone/trial/roofline.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hone::trial {
namespace {

Roofline sample() {
  return {.cores = 4,
          .flops = {1e11, 3.6e11},
          .fork_join = {{2, 1e-6}, {4, 2e-6}},
          .levels = {{1, 32'000, 1, {4e11, 16e11}, {2e11, 8e11}},
                     {2, 1'000'000, 2, {1e11, 4e11}, {5e10, 2e11}},
                     {0, 0, 4, {1e10, 2e10}, {8e9, 1.6e10}}},
          .unix_time = 1,
          .host_load = 0};
}

TEST(roofline, rates_add_up_until_all_cores_can_do_no_more) {
  const Rate rate{1e11, 3.6e11};
  EXPECT_DOUBLE_EQ(rate.of(1, 4), 1e11);
  EXPECT_DOUBLE_EQ(rate.of(3, 4), 3e11);
  EXPECT_DOUBLE_EQ(rate.of(4, 4), 3.6e11);
  EXPECT_DOUBLE_EQ(rate.of(64, 4), 3.6e11);
  EXPECT_DOUBLE_EQ((Rate{1e10, 1.5e10}.of(2, 4)), 1.5e10);  // one bus
  EXPECT_DOUBLE_EQ((Rate{1e10, 0.9e10}.of(2, 2)), 1e10);    // noise: never less than one core
}

TEST(roofline, data_live_in_the_first_level_that_holds_them) {
  const Roofline machine = sample();
  EXPECT_EQ(level_of(machine, 32'000, 1).level, 1);
  EXPECT_EQ(level_of(machine, 32'001, 1).level, 2);
  EXPECT_EQ(level_of(machine, 32'001, 2).level, 1);     // each thread has a half of it
  EXPECT_EQ(level_of(machine, 1'000'001, 2).level, 0);  // two cores share one
  EXPECT_EQ(level_of(machine, 1'000'001, 3).level, 2);
  EXPECT_EQ(level_of(machine, 2'000'001, 64).level, 0);
}

TEST(roofline, the_limit_is_what_binds) {
  const auto expect = [](double flops, double bytes, double working_set, int threads,
                         double seconds, std::string_view what) {
    const Bound limit = bound(flops, bytes, working_set, sample(), threads);
    EXPECT_DOUBLE_EQ(limit.seconds, seconds) << what;
    EXPECT_EQ(limit.what, what);
  };
  expect(1e11, 1, 1, 1, 1, "compute");
  expect(3.6e11, 1, 1, 4, 1, "compute");  // by all cores
  expect(1, 4e11, 1'000, 1, 1, "L1");
  expect(1, 1e11, 500'000, 1, 1, "L2");
  expect(1, 1e10, 1e10, 1, 1, "memory");
  expect(0, 0, 0, 1, 0, "compute");
}

TEST(roofline, matrix_instructions_and_launches_limit_a_gpu) {
  Roofline gpu = sample();
  gpu.cores = 1;
  gpu.matrix = {{"f16", 1e12}, {"f32", 5e11}};
  gpu.launch_seconds = 1e-3;
  const auto expect = [&](double flops, double bytes, std::string_view matrix, double seconds,
                          std::string_view what) {
    const Bound limit = bound(flops, bytes, 1e10, gpu, 1, matrix);
    EXPECT_DOUBLE_EQ(limit.seconds, seconds) << what;
    EXPECT_EQ(limit.what, what);
  };
  expect(3.6e11, 1, "", 1, "compute");
  expect(1e12, 1, "f16", 1, "matrix");
  expect(5e11, 1, "f32", 1, "matrix");
  expect(3.6e11, 1, "bf16", 1, "compute");  // there are no such instructions
  expect(1e12, 4e10, "f16", 2, "memory");
  expect(1e8, 1e6, "f16", 1e-3, "launch");
}

TEST(roofline, fork_and_join_is_a_figure_of_each_number_of_threads) {
  const std::vector<ForkJoin> measured = {{2, 1e-6}, {4, 2e-6}, {12, 6e-6}};
  EXPECT_EQ(fork_join_seconds(measured, 1), 0);
  EXPECT_DOUBLE_EQ(fork_join_seconds(measured, 2), 1e-6);
  EXPECT_DOUBLE_EQ(fork_join_seconds(measured, 3), 1.5e-6);
  EXPECT_DOUBLE_EQ(fork_join_seconds(measured, 4), 2e-6);
  EXPECT_DOUBLE_EQ(fork_join_seconds(measured, 10), 5e-6);
  EXPECT_DOUBLE_EQ(fork_join_seconds(measured, 64), 6e-6);
  EXPECT_EQ(fork_join_seconds({}, 64), 0);
  // Older releases stored the time of all cores only.
  const std::vector<ForkJoin> all = {{12, 6e-6}};
  EXPECT_EQ(fork_join_seconds(all, 2), 6e-6);
  EXPECT_NE(
      trial::describe(sample()).find("measured fork and join of 2, 4 threads: 1.00, 2.00 us\n"),
      std::string::npos)
      << trial::describe(sample());
}

TEST(roofline, figures_of_no_machine_are_refused) {
  EXPECT_TRUE(check(sample()).ok());
  const auto refused = [](auto change) {
    Roofline bad = sample();
    change(bad);
    return !check(bad).ok();
  };
  EXPECT_TRUE(refused([](Roofline& r) { r.cores = 0; }));
  EXPECT_TRUE(refused([](Roofline& r) { r.flops.all = 0; }));
  EXPECT_TRUE(refused([](Roofline& r) { r.flops.one = NAN; }));
  EXPECT_TRUE(refused([](Roofline& r) { r.fork_join[0].seconds = -1; }));
  EXPECT_TRUE(refused([](Roofline& r) { r.fork_join[0].seconds = NAN; }));
  EXPECT_TRUE(refused([](Roofline& r) { r.fork_join[0].threads = 1; }));
  EXPECT_TRUE(refused([](Roofline& r) { r.fork_join[1].threads = 2; }));
  EXPECT_TRUE(refused([](Roofline& r) { r.fork_join[1].threads = 5; })) << "more than cores";
  EXPECT_FALSE(refused([](Roofline& r) { r.fork_join.clear(); }));
  EXPECT_TRUE(refused([](Roofline& r) { r.levels.clear(); }));
  EXPECT_TRUE(refused([](Roofline& r) { r.levels.pop_back(); }));
  EXPECT_TRUE(refused([](Roofline& r) { r.levels[0].level = 0; }));
  EXPECT_TRUE(refused([](Roofline& r) { r.levels[0].bytes = 0; }));
  EXPECT_TRUE(refused([](Roofline& r) { r.levels[1].shared_by = 0; }));
  EXPECT_TRUE(refused([](Roofline& r) { r.levels[1].write.all = INFINITY; }));
}

}  // namespace
}  // namespace hone::trial
