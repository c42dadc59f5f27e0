#include "hone/commands/time_plan.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

constexpr int64_t kMegabyte = 1 << 20;

// ResNet-18 on a desktop: 45 MB of weights, a dozen kernels, some milliseconds a run.
TimeDemand usual() {
  return {
      .budget_seconds = 60, .weight_bytes = 45 * kMegabyte, .kernels = 12, .run_seconds = 0.005};
}

TEST(time_plan, compares_everything_in_a_usual_budget) {
  const TimePlan plan = plan_time(usual());
  EXPECT_EQ(plan.not_compared, "");
  EXPECT_EQ(plan.in_model_skipped, "");
  EXPECT_TRUE(plan.writes_untuned);
  EXPECT_DOUBLE_EQ(plan.compare_seconds, 1.5);
  EXPECT_DOUBLE_EQ(plan.in_model_seconds, 3);  // a twentieth of the budget
  EXPECT_DOUBLE_EQ(plan.reserved_seconds, plan.in_model_seconds + plan.finish_seconds);
  EXPECT_LT(plan.reserved_seconds, 12);  // the search has most of it
}

TEST(time_plan, kernels_that_vary_have_a_fifth_of_the_budget_for_smaller_sizes) {
  TimeDemand demand = usual();
  const TimePlan fixed = plan_time(demand);
  demand.varies = true;
  const TimePlan plan = plan_time(demand);
  EXPECT_EQ(fixed.sizes_seconds, 0);
  EXPECT_DOUBLE_EQ(plan.sizes_seconds, 12);
  EXPECT_DOUBLE_EQ(plan.reserved_seconds, fixed.reserved_seconds + 12);
  EXPECT_DOUBLE_EQ(plan.finish_seconds, fixed.finish_seconds);
}

TEST(time_plan, puts_what_was_measured_in_place_of_estimates) {
  const UntunedWrite slow = {.seconds = 4, .assembly_seconds = 0.5};
  const TimePlan first = plan_time(usual()), second = plan_time(usual(), slow);
  EXPECT_DOUBLE_EQ(second.assembly_seconds, 0.5);
  EXPECT_DOUBLE_EQ(second.compare_seconds, first.compare_seconds);
  // Twice what it took, a little more, loading, comparing and two seconds of checks.
  EXPECT_DOUBLE_EQ(second.finish_seconds, 8.3 + 0.5 + 1.5 + 2);
  EXPECT_GT(second.finish_seconds, first.finish_seconds);
}

// Kernels that are compiled during the search need not be compiled when the library is written.
TEST(time_plan, a_device_s_kernels_are_compiled_by_the_search) {
  const UntunedWrite slow = {.seconds = 8, .assembly_seconds = 7};
  TimeDemand demand = usual();
  const TimePlan on_cpu = plan_time(demand, slow);
  demand.for_device = true;
  const TimePlan on_device = plan_time(demand, slow);
  EXPECT_LT(on_device.finish_seconds, on_cpu.finish_seconds - 10);
  EXPECT_GT(on_device.finish_seconds, 2 * 1 + 0.5 + 1.5);  // twice the linking, loading, comparing
  EXPECT_LT(on_device.assembly_seconds, 1);
  EXPECT_EQ(on_device.in_model_skipped, "");
  // A budget of some seconds is for the search alone.
  demand.budget_seconds = 8;
  EXPECT_FALSE(plan_time(demand).writes_untuned);
  EXPECT_LT(plan_time(demand).reserved_seconds, 4);
}

TEST(time_plan, compares_nothing_where_no_models_are_timed) {
  TimeDemand demand = usual();
  demand.times_no_models = "the machine is far away";
  const TimePlan plan = plan_time(demand);
  EXPECT_EQ(plan.not_compared, "the machine is far away");
  EXPECT_EQ(plan.in_model_skipped, "the machine is far away");
  EXPECT_FALSE(plan.writes_untuned);
  EXPECT_LT(plan.reserved_seconds, plan_time(usual()).reserved_seconds);
}

// The second plan compares what the first one does: else the untuned model was written in vain.
TEST(time_plan, decides_on_the_comparison_once) {
  for (const double budget : {0.5, 2.0, 9.9, 10.0, 60.0, 3600.0}) {
    for (const int64_t bytes : {int64_t{0}, 100 * kMegabyte, 900 * kMegabyte, 4000 * kMegabyte}) {
      const TimeDemand demand = {
          .budget_seconds = budget, .weight_bytes = bytes, .kernels = 30, .run_seconds = 0.01};
      const TimePlan first = plan_time(demand);
      const TimePlan second = plan_time(demand, UntunedWrite{.seconds = 100});
      EXPECT_EQ(first.not_compared, second.not_compared) << budget << " s, " << bytes;
      EXPECT_EQ(first.writes_untuned, second.writes_untuned) << budget << " s, " << bytes;
    }
  }
}

TEST(time_plan, leaves_out_what_a_short_budget_has_no_time_for) {
  TimeDemand demand = usual();
  demand.budget_seconds = 5;
  const TimePlan plan = plan_time(demand);
  EXPECT_EQ(plan.not_compared, "the budget is too short");
  EXPECT_EQ(plan.in_model_skipped, "the budget is too short");
  EXPECT_FALSE(plan.writes_untuned);
  EXPECT_EQ(plan.in_model_seconds, 0);
}

// Whatever the rest is thought to take, a fifth of the budget is the search's.
TEST(time_plan, always_leaves_time_to_search) {
  for (const double budget : {0.01, 0.5, 2.0, 30.0, 600.0}) {
    TimeDemand demand = usual();
    demand.budget_seconds = budget;
    demand.run_seconds = 5;
    const TimePlan plan = plan_time(demand, UntunedWrite{.seconds = 50, .assembly_seconds = 20});
    EXPECT_GE(budget - plan.reserved_seconds, 0.2 * budget * (1 - 1e-9)) << budget;
    EXPECT_GE(plan.reserved_seconds, 0) << budget;
  }
}

// A small model is compared from ten seconds on, a larger one if writing is a small part of it.
TEST(time_plan, compares_what_is_cheap_to_write) {
  TimeDemand demand = usual();
  demand.budget_seconds = 10;
  EXPECT_EQ(plan_time(demand).not_compared, "");
  demand.weight_bytes = 300 * kMegabyte;  // nearly three seconds to write
  EXPECT_EQ(plan_time(demand).not_compared, "the budget is too short");
  demand.budget_seconds = 60;
  EXPECT_EQ(plan_time(demand).not_compared, "");
}

TEST(time_plan, never_holds_a_large_model_twice) {
  TimeDemand demand = usual();
  demand.weight_bytes = 1025 * kMegabyte;
  demand.budget_seconds = 100000;
  const TimePlan plan = plan_time(demand);
  EXPECT_EQ(plan.not_compared, "the model is too large");
  EXPECT_EQ(plan.in_model_skipped, "the model is too large");
  EXPECT_FALSE(plan.writes_untuned);
  EXPECT_EQ(plan.in_model_seconds, 0);
  EXPECT_GT(plan.finish_seconds, 1024.0 * kMegabyte / 0.12e9);  // it is written once, at the end
}

// A model that can never fit is found out before the search, even if nothing is compared.
TEST(time_plan, writes_the_untuned_model_first_if_memory_is_bounded) {
  TimeDemand demand = usual();
  demand.budget_seconds = 5;
  demand.bounded_memory = true;
  const TimePlan plan = plan_time(demand);
  EXPECT_TRUE(plan.writes_untuned);
  EXPECT_EQ(plan.not_compared, "the budget is too short");
}

TEST(time_plan, has_time_to_write_a_static_library_beside_a_shared_one) {
  const UntunedWrite written = {.seconds = 1, .assembly_seconds = 0.5};
  TimeDemand demand = usual();
  const TimePlan shared = plan_time(demand, written);
  demand.static_library = true;
  const TimePlan both = plan_time(demand, written);
  EXPECT_DOUBLE_EQ(both.finish_seconds - shared.finish_seconds, 2.3);
  // Without the comparison only the static library itself is written.
  demand.budget_seconds = 5;
  demand.weight_bytes = 300 * kMegabyte;
  const TimePlan alone = plan_time(demand, written);
  demand.static_library = false;
  EXPECT_DOUBLE_EQ(alone.finish_seconds, plan_time(demand, written).finish_seconds);
}

TEST(time_plan, has_time_for_the_check) {
  const UntunedWrite checked = {.seconds = 1, .assembly_seconds = 0.5, .checked = true};
  UntunedWrite unchecked = checked;
  unchecked.checked = false;
  TimeDemand demand = usual();
  demand.checks = false;
  const double without = plan_time(demand, unchecked).finish_seconds;
  EXPECT_DOUBLE_EQ(plan_time(demand, checked).finish_seconds, without);
  demand.checks = true;
  // A thirtieth of the budget without a reference, three runs with it.
  EXPECT_DOUBLE_EQ(plan_time(demand, unchecked).finish_seconds, without + 2);
  EXPECT_DOUBLE_EQ(plan_time(demand, checked).finish_seconds, without + 3 * 0.005);
}

TEST(time_plan, bounds_the_seconds_of_a_check) {
  EXPECT_DOUBLE_EQ(check_seconds(3).more, 0.5);
  EXPECT_DOUBLE_EQ(check_seconds(90).more, 3);
  EXPECT_DOUBLE_EQ(check_seconds(3600).more, 10);
  EXPECT_DOUBLE_EQ(check_seconds(90).most, 15);
}

// The fewest rounds that tell anything are run, however long they take.
TEST(time_plan, compares_slow_models_for_longer) {
  TimeDemand demand = usual();
  demand.run_seconds = 1;
  EXPECT_DOUBLE_EQ(plan_time(demand).compare_seconds, 8);  // four rounds of two models
  demand.run_seconds = 0.005;
  demand.budget_seconds = 20;
  EXPECT_DOUBLE_EQ(plan_time(demand).compare_seconds, 1);
}

TEST(time_plan, gives_slow_builds_more_time_inside_the_model) {
  const auto seconds = [](double budget, double assembly) {
    TimeDemand demand = usual();
    demand.budget_seconds = budget;
    return plan_time(demand, UntunedWrite{.seconds = 1, .assembly_seconds = assembly});
  };
  EXPECT_DOUBLE_EQ(seconds(100, 0.5).in_model_seconds, 5);
  EXPECT_DOUBLE_EQ(seconds(100, 2).in_model_seconds, 10);  // five builds
  EXPECT_EQ(seconds(100, 3).in_model_seconds, 0);          // they are more than 12 of 100 s
  EXPECT_EQ(seconds(100, 3).in_model_skipped, "the budget is too short");
  EXPECT_DOUBLE_EQ(seconds(3600, 0.5).in_model_seconds, 60);
  EXPECT_DOUBLE_EQ(seconds(3600, 15).in_model_seconds, 150);  // ten builds
}

TEST(time_plan, bounds_the_challengers_by_the_time_to_compile_them) {
  EXPECT_EQ(most_challengers({.assembly_seconds = 1, .in_model_seconds = 12}, 10), 20);
  EXPECT_EQ(most_challengers({.assembly_seconds = 1, .in_model_seconds = 5}, 10), 4);  // at least
  EXPECT_GT(most_challengers({.assembly_seconds = 0, .in_model_seconds = 1}, 10), 1000);
}

}  // namespace
}  // namespace hone
