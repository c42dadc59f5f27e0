#include "hone/cost/decision_history.h"

#include <gtest/gtest.h>

#include "hone/compute/dag_testing.h"
#include "hone/space/space_testing.h"

namespace hone::cost {
namespace {

using compute::testing::gemm;
using space::Point;
using space::Space;

// Returns the point with the first option of the decisions of a role.
Point without(const Space& space, Point point, std::string_view role) {
  const std::vector<space::Decision>& decisions = space.decisions(point.sketch);
  for (size_t i = 0; i < decisions.size(); ++i) {
    if (decisions[i].role_name() == role) point.choices[i] = 0;
  }
  return point;
}

// Without measuring, a model trained on schedules without blocks does not choose them.
TEST(decision_history, blocks_are_those_of_the_rule_of_thumb) {
  const Result<Space> space =
      Space::create(gemm(97, 33, 1031), space::with_small_caches(space::narrow()));
  ASSERT_TRUE(space.ok());
  const DecisionHistory history(*space);
  const Point rule = space->default_point();
  const Point other = without(*space, without(*space, rule, "sum_blocks"), "column_blocks");
  EXPECT_NE(other, rule);
  EXPECT_EQ(history.as_usual(other), space->canonical(rule));
  EXPECT_TRUE(history.has_blocks(rule));
  EXPECT_FALSE(history.has_blocks(other));
}

TEST(decision_history, what_was_always_decided_stays_as_it_is) {
  const Result<Space> space = Space::create(gemm(9, 33, 31), space::narrow());
  ASSERT_TRUE(space.ok());
  const DecisionHistory history(*space);
  Rng rng(5);
  for (int i = 0; i < 50; ++i) {
    const Point point = space->sample(rng);
    EXPECT_EQ(history.as_usual(point), point);
    EXPECT_FALSE(history.has_blocks(point));
  }
}

}  // namespace
}  // namespace hone::cost
