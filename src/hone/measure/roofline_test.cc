#include "hone/measure/roofline.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hone::measure {
namespace {

Roofline sample() {
  return {.cores = 4,
          .flops = {1e11, 3.6e11},
          .fork_join_seconds = 1e-6,
          .levels = {{1, 32'000, 1, {4e11, 16e11}, {2e11, 8e11}},
                     {2, 1'000'000, 2, {1e11, 4e11}, {5e10, 2e11}},
                     {0, 0, 4, {1e10, 2e10}, {8e9, 1.6e10}}},
          .unix_time = 1,
          .host_load = 0};
}

TEST(roofline, rates_add_up_until_all_cores_can_do_no_more) {
  const Rate rate{1e11, 3.6e11};
  EXPECT_DOUBLE_EQ(rate_of(rate, 4, 1), 1e11);
  EXPECT_DOUBLE_EQ(rate_of(rate, 4, 3), 3e11);
  EXPECT_DOUBLE_EQ(rate_of(rate, 4, 4), 3.6e11);
  EXPECT_DOUBLE_EQ(rate_of(rate, 4, 64), 3.6e11);
  EXPECT_DOUBLE_EQ(rate_of({1e10, 1.5e10}, 4, 2), 1.5e10);  // one bus
  EXPECT_DOUBLE_EQ(rate_of({1e10, 0.9e10}, 2, 2), 1e10);    // noise: never less than one core
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
  const Roofline machine = sample();
  EXPECT_DOUBLE_EQ(bound_seconds(1e11, 1, 1, machine, 1), 1);        // compute
  EXPECT_DOUBLE_EQ(bound_seconds(3.6e11, 1, 1, machine, 4), 1);      // by all cores
  EXPECT_DOUBLE_EQ(bound_seconds(1, 4e11, 1'000, machine, 1), 1);    // L1
  EXPECT_DOUBLE_EQ(bound_seconds(1, 1e11, 500'000, machine, 1), 1);  // L2
  EXPECT_DOUBLE_EQ(bound_seconds(1, 1e10, 1e10, machine, 1), 1);     // memory
  EXPECT_DOUBLE_EQ(bound_seconds(0, 0, 0, machine, 1), 0);
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
  EXPECT_TRUE(refused([](Roofline& r) { r.fork_join_seconds = -1; }));
  EXPECT_TRUE(refused([](Roofline& r) { r.levels.clear(); }));
  EXPECT_TRUE(refused([](Roofline& r) { r.levels.pop_back(); }));
  EXPECT_TRUE(refused([](Roofline& r) { r.levels[0].level = 0; }));
  EXPECT_TRUE(refused([](Roofline& r) { r.levels[0].bytes = 0; }));
  EXPECT_TRUE(refused([](Roofline& r) { r.levels[1].shared_by = 0; }));
  EXPECT_TRUE(refused([](Roofline& r) { r.levels[1].write.all = INFINITY; }));
}

}  // namespace
}  // namespace hone::measure
