#include "hone/session/size_variants.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "hone/compute/dag_testing.h"
#include "hone/session/size_trials.h"

namespace hone {
namespace {

target::Target avx2() {
  target::Cpu cpu;
  cpu.vector_bytes = 32;
  cpu.vector_registers = 16;
  cpu.caches = {{1, 32 << 10, 64, 1, 64}, {2, 1 << 20, 64, 1, 32}, {3, 16 << 20, 64, 2, 16}};
  return {.part = cpu};
}

// Rows 1 to 512 of a product.
struct Rows {
  graph::TaskCall call;
  graph::Varying varying;
  KernelLimits limits;
};
Rows product_of_rows(int64_t least = 1) {
  Rows rows;
  rows.call.dag = compute::testing::gemm(512, 256, 256);
  rows.varying.symbols = {{"rows", least, 512}};
  rows.varying.forms = {{{{1, {0}}}, 0, 1}};
  rows.varying.sizes = 0;
  rows.limits.outputs = {{rows.call.dag.params.size() - 1, {.form = 0, .dimension = 0}}};
  return rows;
}

VariantContext context_of(const Rows& rows, const target::Target& target) {
  const auto predict = [](const schedule::Steps&) { return 1.0; };
  return {&rows.varying, &target, trial::Accuracy::kStrict, 2, 1, predict};
}

SizeVariants variants_of(const Rows& rows, const schedule::Steps& own,
                         const ScheduleTimes* times = nullptr) {
  const target::Target target = avx2();
  const Task task(rows.call.dag, 1, target);
  VariantContext context = context_of(rows, target);
  context.times = times;
  return choose_variants(rows.call, task, own, rows.limits, context);
}

SizeTrials trials_of(const Rows& rows, const schedule::Steps& own, bool may_replace = false,
                     const std::vector<schedule::Steps>& more = {}) {
  const target::Target target = avx2();
  const Task task(rows.call.dag, 1, target);
  VariantContext context = context_of(rows, target);
  context.may_replace = may_replace;
  return choose_size_trials(rows.call, task, own, rows.limits, context, more);
}

// Schedules of which some read the weights in another order than the default one.
std::vector<schedule::Steps> random_schedules(const compute::Dag& dag) {
  const Result<space::Space> space = space::Space::create(dag, avx2());
  Rng rng(1);
  std::vector<schedule::Steps> schedules;
  for (int i = 0; i < 20; ++i) schedules.push_back(space->steps(space->sample(rng)));
  return schedules;
}

// All schedules take as long as the first one.
ScheduleTimes equal_times(const Rows& rows, const SizeTrials& trials) {
  ScheduleTimes times;
  double seconds = 1e-5;
  for (const std::vector<int64_t>& sizes : trials.sizes) {
    for (const std::vector<schedule::Steps>& layout : trials.layouts)
      for (const schedule::Steps& steps : layout)
        times[schedule::to_string(steps)][part_text(rows.call.dag, rows.limits, sizes)] = seconds;
    seconds *= 10;
  }
  return times;
}

schedule::Steps default_steps(const compute::Dag& dag) {
  const target::Target target = avx2();
  const Result<space::Space> space = space::Space::create(dag, target);
  return space->steps(space->default_point());
}

TEST(size_variants, few_rows_have_a_schedule_of_their_own) {
  const Rows rows = product_of_rows();
  const SizeVariants variants = variants_of(rows, default_steps(rows.call.dag));
  ASSERT_FALSE(variants.others.empty());
  // The intervals follow each other from the smallest size on; the kernel's own is the last one.
  int64_t from = 0;
  for (const SizeVariant& variant : variants.others) {
    EXPECT_EQ(variant.when.form, 0);
    EXPECT_EQ(variant.when.from, from);
    EXPECT_GE(variant.when.most, std::max<int64_t>(from, 1));
    EXPECT_LT(variant.when.most, 512);
    EXPECT_LT(variant.share, 1);
    EXPECT_TRUE(space::make_candidate(rows.call.dag, variant.steps).ok());
    from = variant.when.most + 1;
  }
  EXPECT_EQ(variants.own.form, 0);
  EXPECT_EQ(variants.own.from, from);
  EXPECT_EQ(variants.own.most, std::numeric_limits<int64_t>::max());
}

// Returns all splits of the schedules that are compared for rows of a product, each with its
// schedule.
std::vector<std::pair<schedule::Steps, schedule::Split>> compared_splits() {
  const Rows rows = product_of_rows();
  const target::Target target = avx2();
  const Task task(rows.call.dag, 1, target);
  const VariantContext context = context_of(rows, target);
  SizeCandidates candidates(rows.call, rows.limits, context, *task.space(context.accuracy), 0);
  EXPECT_TRUE(candidates.add_all(default_steps(rows.call.dag)));
  std::vector<std::pair<schedule::Steps, schedule::Split>> splits;
  for (const auto& [places, all] : candidates.layouts()) {
    for (const SizeCandidate& one : all) {
      for (const schedule::Step& step : one.schedule.steps()) {
        if (const auto* split = std::get_if<schedule::Split>(&step))
          splits.emplace_back(one.schedule.steps(), *split);
      }
    }
  }
  return splits;
}

// Vectors of fewer lanes than the space has would have to collect what lies in the order of whole
// ones.
TEST(size_variants, short_tiles_have_whole_vectors) {
  int vectors = 0;
  for (const auto& [steps, split] : compared_splits()) {
    const schedule::Vectorize innermost{split.stage,
                                        fmt::format("{}.{}", split.loop, split.lengths.size())};
    if (std::find(steps.begin(), steps.end(), schedule::Step(innermost)) == steps.end()) continue;
    EXPECT_EQ(split.lengths.back() % 4, 0) << schedule::to_string(steps);
    ++vectors;
  }
  EXPECT_GT(vectors, 100);
}

// Each term would be looked for by a division if it were added in a group of another length than
// its weights lie in.
TEST(size_variants, terms_are_added_in_groups_as_weights_lie) {
  int groups = 0;
  for (const auto& [steps, split] : compared_splits()) {
    if (split.loop != "k") continue;
    const std::string text = schedule::to_string(steps);
    EXPECT_NE(text.find(fmt::format(" k/{}, ", split.lengths.back())), std::string::npos) << text;
    ++groups;
  }
  EXPECT_GT(groups, 0);
}

TEST(size_variants, sizes_near_the_largest_have_none) {
  const Rows rows = product_of_rows(500);
  EXPECT_TRUE(variants_of(rows, default_steps(rows.call.dag)).others.empty());
}

TEST(size_variants, a_kernel_without_limits_has_none) {
  Rows rows = product_of_rows();
  rows.limits.outputs.clear();
  EXPECT_TRUE(variants_of(rows, default_steps(rows.call.dag)).others.empty());
}

TEST(size_trials, are_of_the_smallest_a_middle_and_the_largest_size) {
  const Rows rows = product_of_rows();
  const schedule::Steps own = default_steps(rows.call.dag);
  const SizeTrials trials = trials_of(rows, own);
  ASSERT_EQ(trials.sizes.size(), 3U);
  EXPECT_EQ(trials.sizes[0][0], 1);
  EXPECT_GE(trials.sizes[1][0], 64);
  EXPECT_LE(trials.sizes[1][0], 256);
  EXPECT_EQ(trials.sizes[2][0], 512);
  ASSERT_EQ(trials.layouts.size(), 1U) << "weights may not lie otherwise";
  const std::vector<schedule::Steps>& schedules = trials.layouts[0];
  ASSERT_GE(schedules.size(), 3U);
  EXPECT_EQ(schedules[0], own);
  for (const SizeVariant& predicted : variants_of(rows, own).others)
    EXPECT_EQ(std::count(schedules.begin(), schedules.end(), predicted.steps), 1);
}

TEST(size_variants, what_was_measured_decides) {
  const Rows rows = product_of_rows();
  const schedule::Steps own = default_steps(rows.call.dag);
  const SizeTrials trials = trials_of(rows, own);
  ScheduleTimes times = equal_times(rows, trials);
  EXPECT_TRUE(variants_of(rows, own, &times).others.empty()) << "nothing is faster";

  const auto at = [&](size_t schedule, size_t size) -> double& {
    return times.at(schedule::to_string(trials.layouts[0][schedule]))
        .at(part_text(rows.call.dag, rows.limits, trials.sizes[size]));
  };
  at(2, 0) /= 4;
  const SizeVariants variants = variants_of(rows, own, &times);
  ASSERT_EQ(variants.others.size(), 1U);
  EXPECT_EQ(variants.others[0].steps, trials.layouts[0][2]);
  EXPECT_EQ(variants.others[0].when.from, 0);
  EXPECT_LT(variants.others[0].when.most, trials.sizes[1][0]);

  // A schedule that failed at one size is not used at any.
  at(2, 1) = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(variants_of(rows, own, &times).others.empty());

  // The times that decided are told: at three sizes they were measured.
  ASSERT_EQ(variants.compared.size(), 6U);
  EXPECT_EQ(variants.compared.front().value, 1);
  EXPECT_EQ(variants.compared.back().value, 512);
  size_t measured = 0;
  for (const ComparedSize& size : variants.compared) {
    ASSERT_EQ(size.seconds.size(), 2U);
    EXPECT_EQ(size.symbols, std::vector<int64_t>{size.value});
    measured += size.is_measured ? 1 : 0;
  }
  EXPECT_EQ(measured, 3U);
  EXPECT_NEAR(variants.compared.front().seconds[0], 1e-5 / 4, 1e-12);
  EXPECT_NEAR(variants.compared.front().seconds[1], 1e-5, 1e-12);

  // If the kernel's own schedule was not measured at all sizes, predictions decide.
  times.at(schedule::to_string(own)).clear();
  EXPECT_FALSE(variants_of(rows, own, &times).others.empty());
}

// The kernel's own schedule is as good for one row as any, so that a schedule for some more rows
// runs there, too.
TEST(size_variants, gains_at_middle_sizes_are_enough) {
  const Rows rows = product_of_rows();
  const schedule::Steps own = default_steps(rows.call.dag);
  const SizeTrials trials = trials_of(rows, own);
  ScheduleTimes times = equal_times(rows, trials);
  times.at(schedule::to_string(trials.layouts[0][2]))
      .at(part_text(rows.call.dag, rows.limits, trials.sizes[1])) /= 4;
  const SizeVariants variants = variants_of(rows, own, &times);
  ASSERT_EQ(variants.others.size(), 1U);
  EXPECT_EQ(variants.others[0].steps, trials.layouts[0][2]);
  EXPECT_EQ(variants.others[0].when.from, 0);
  EXPECT_GE(variants.others[0].when.most, trials.sizes[1][0]);
  EXPECT_LT(variants.others[0].when.most, trials.sizes[2][0]);
}

TEST(size_variants, measured_times_of_all_sizes_decide_how_weights_lie) {
  const Rows rows = product_of_rows();
  const schedule::Steps own = default_steps(rows.call.dag);
  const SizeTrials trials = trials_of(rows, own, true, random_schedules(rows.call.dag));
  ASSERT_GE(trials.layouts.size(), 2U) << "another order of weights is measured";
  const target::Target target = avx2();
  const Task task(rows.call.dag, 1, target);
  VariantContext context = context_of(rows, target);
  context.may_replace = context.is_tuned = true;
  ScheduleTimes times = equal_times(rows, trials);
  context.times = &times;
  const auto replaced = [&] {
    return choose_variants(rows.call, task, own, rows.limits, context).replaces_own;
  };
  EXPECT_FALSE(replaced()) << "no order is better";

  const schedule::Steps& other = trials.layouts[1][0];
  const auto at = [&](size_t size) -> double& {
    return times.at(schedule::to_string(other))
        .at(part_text(rows.call.dag, rows.limits, trials.sizes[size]));
  };
  at(0) /= 2;
  at(2) *= 0.99;
  const std::optional<schedule::Steps> found = replaced();
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, other) << "it is as fast at the other sizes";
  at(1) *= 4;
  for (size_t i = 1; i < trials.layouts[1].size(); ++i)
    times.erase(schedule::to_string(trials.layouts[1][i]));
  EXPECT_FALSE(replaced()) << "it loses more at a middle size";
  at(1) /= 4;
  at(2) *= 1.2;
  EXPECT_FALSE(replaced()) << "it loses at the largest size";
  at(2) /= 1.2;
  context.may_replace = false;
  EXPECT_FALSE(replaced()) << "other kernels' limits are those for its own schedule";
}

}  // namespace
}  // namespace hone
