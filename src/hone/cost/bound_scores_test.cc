#include "hone/cost/bound_scores.h"

#include <gtest/gtest.h>

#include "hone/compute/dag_testing.h"

namespace hone::cost {
namespace {

TEST(bound_scores, sum_to_one_and_tell_memory_from_arithmetic) {
  const target::Target target = *target::find("x86-64-avx2");
  const auto scores = [&](const compute::Dag& dag) {
    const auto space = space::Space::create(dag, target);
    const auto candidate = space->instantiate(space->default_point());
    return static_bounds({&*candidate, &target, 1, 0});
  };
  const BoundScores square = scores(compute::testing::gemm(256, 256, 256));
  const BoundScores vector = scores(compute::testing::gemm(1, 2048, 2048));
  for (const BoundScores& score : {square, vector}) EXPECT_NEAR(score.memory + score.core, 1, 1e-9);
  EXPECT_GT(vector.memory, square.memory);
}

TEST(bound_scores, counted_ones_come_first_and_files_say_so) {
  const target::Target target = *target::find("x86-64-avx2");
  const compute::Dag dag = compute::testing::gemm(8, 16, 8);
  const auto space = space::Space::create(dag, target);
  const auto candidate = space->instantiate(space->default_point());
  const Query query = {&*candidate, &target, 1, 0};
  EXPECT_EQ(bound_scores(query, BoundScores{0.25, 0.5}).memory, 0.25);
  EXPECT_EQ(bound_scores(query, BoundScores{0.25, 0.5}).core, 0.5);
  EXPECT_EQ(bound_scores(query, std::nullopt).memory, static_bounds(query).memory);
  EXPECT_EQ(bounds_source(0, 9), "static");
  EXPECT_EQ(bounds_source(0, 0), "static");
  EXPECT_EQ(bounds_source(4, 9), "mixed");
  EXPECT_EQ(bounds_source(9, 9), "counters");
}

}  // namespace
}  // namespace hone::cost
