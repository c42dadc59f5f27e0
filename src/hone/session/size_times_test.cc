#include "hone/session/size_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hone/base/file.h"
#include "hone/compute/dag_testing.h"
#include "hone/db/registry.h"
#include "hone/trial/schedule_version.h"

namespace hone {
namespace {

trial::Record timed(const std::string& steps, const std::string& part, double seconds) {
  trial::Record record;
  record.task = 5;
  record.kernel_class = "gemm";
  record.device = "avx2-x-2c";
  record.version = kScheduleVersion;
  record.algorithm = "direct";
  record.steps = steps;
  record.times = {seconds};
  record.centre = record.low = record.high = seconds;
  record.threads = 2;
  record.part = part;
  return record;
}

// The product y[m, n] of param 0 and 1 is param 2.
TEST(size_times, parts_are_told_by_what_is_needed) {
  const compute::Dag dag = compute::testing::gemm(512, 256, 64);
  const size_t y = dag.params.size() - 1;
  KernelLimits limits;
  limits.outputs = {{y, {.form = 0, .dimension = 0, .unit = 2}},
                    {y, {.form = 1, .dimension = 1, .period = 32}}};
  EXPECT_EQ(part_text(dag, limits, {10, 7}), fmt::format("{0}[0]<20, {0}[1]%32<7", y));
  EXPECT_EQ(part_text(dag, limits, {256, 7}), fmt::format("{}[1]%32<7", y));
  EXPECT_EQ(part_text(dag, limits, {256, 32}), "whole");
  limits.outputs = {{y, {.form = 0, .dimension = 0, .scale = 3, .offset = 1}}};
  EXPECT_EQ(part_text(dag, limits, {9}), fmt::format("{}[0]<4", y));  // 3 * i < 10
  limits.outputs.clear();
  const auto sum = static_cast<size_t>(
      std::find_if(dag.stages.begin(), dag.stages.end(),
                   [](const compute::Stage& stage) { return !stage.reduce.empty(); }) -
      dag.stages.begin());
  limits.ends = {{sum, {.form = 0, .unit = 1, .offset = 2}}};
  EXPECT_EQ(part_text(dag, limits, {12}), fmt::format("sum {}<10", sum));
}

TEST(size_times, are_read_from_a_store_once_and_later_ones_replace_them) {
  const TempDir folder = TempDir::create().value();
  const auto store = db::open_store(folder.file("a.db")).value();
  trial::Record failed = timed("b", "2[0]<1", 3e-6), other_threads = timed("a", "2[0]<1", 9e-6),
                whole = timed("a", "", 7e-3);
  failed.outcome = trial::Outcome::kWrongAnswer;
  other_threads.threads = 1;
  ASSERT_TRUE(store
                  ->add(std::vector{timed("a", "2[0]<1", 1e-6), timed("a", "2[0]<1", 2e-6), failed,
                                    other_threads, whole})
                  .ok());
  SizeTimes times("avx2-x-2c", 2);
  EXPECT_TRUE(times.of(5).empty());
  ASSERT_TRUE(times.load(*store, 5).ok());
  EXPECT_EQ(times.of(5).at("a"), (PartSeconds{{"2[0]<1", 2e-6}}));
  EXPECT_TRUE(std::isinf(times.of(5).at("b").at("2[0]<1")));
  times.add(timed("a", "2[0]<1", 4e-6));
  ASSERT_TRUE(times.load(*store, 5).ok());
  EXPECT_EQ(times.of(5).at("a").at("2[0]<1"), 4e-6) << "the store is not read again";
}

TEST(size_times, correct_predictions_between_the_sizes_that_were_measured) {
  SizeCorrection correction;
  EXPECT_EQ(correction.factor(0.5), 1);
  correction.add(0.25, 1e-3, 2e-3);
  correction.add(0.75, 1e-3, 8e-3);
  EXPECT_NEAR(correction.factor(0), 2, 1e-9);
  EXPECT_NEAR(correction.factor(0.25), 2, 1e-9);
  EXPECT_NEAR(correction.factor(0.5), 4, 1e-9);
  EXPECT_NEAR(correction.factor(1), 8, 1e-9);
}

}  // namespace
}  // namespace hone
