#include "hone/target/loop_plan.h"

#include <gtest/gtest.h>

namespace hone::target {
namespace {

Cpu with_vectors(int bytes) {
  Cpu target;
  target.vector_bytes = bytes;
  return target;
}

TEST(loop_plan, short_loops_use_short_vectors_and_long_ones_are_loops) {
  const Cpu target = with_vectors(64);
  EXPECT_EQ(plan_loop({.extent = 5}, target).width, 8);
  EXPECT_EQ(plan_loop({.extent = 100}, target).width, 16);
  EXPECT_EQ(plan_loop({.element_bytes = 8, .extent = 100}, target).lanes, 8);
  EXPECT_EQ(plan_loop({.extent = 8 * 16 + 15}, target).step, 0) << "eight whole vectors";
  EXPECT_EQ(plan_loop({.extent = 9 * 16}, target).step, 1);
  EXPECT_EQ(plan_loop({.reduces = true, .extent = 9 * 16}, target).step, 4);
  EXPECT_EQ(plan_loop({.fixed_indices = true, .extent = 9 * 16}, target).step, 0);
}

TEST(loop_plan, extents_known_at_run_time_take_whole_vectors_or_none) {
  const Cpu target = with_vectors(32);
  EXPECT_EQ(plan_loop({.divisor = 12}, target).kind, LoopKind::kSerial);
  EXPECT_EQ(plan_loop({.divisor = 16}, target).kind, LoopKind::kLanes);
  EXPECT_EQ(plan_loop({.reduces = true, .divisor = 16}, target).step, 2);
  EXPECT_EQ(plan_loop({.scans = true, .divisor = 16}, target).kind, LoopKind::kSerial);
}

TEST(loop_plan, squares_of_words_are_transposed) {
  const auto kind = [](LoopFacts facts, int vector_bytes) {
    return plan_loop(facts, with_vectors(vector_bytes)).kind;
  };
  LoopFacts square{.extent = 8, .rows = 8, .row_stride = 1, .lane_stride = 100};
  EXPECT_EQ(kind(square, 32), LoopKind::kSquare);
  EXPECT_EQ(kind(square, 64), LoopKind::kLanes) << "half a vector";
  square.row_stride = 2;
  EXPECT_EQ(kind(square, 32), LoopKind::kLanes) << "gaps between the rows";
  square.row_stride = square.lane_stride = 1;
  EXPECT_EQ(kind(square, 32), LoopKind::kLanes) << "contiguous as it is";
  EXPECT_EQ(
      kind({.element_bytes = 8, .extent = 4, .rows = 4, .row_stride = 1, .lane_stride = 9}, 32),
      LoopKind::kLanes)
      << "no words";
}

TEST(loop_plan, lanes_are_packed_and_permuted_where_one_instruction_does_it) {
  const LoopFacts filter{.filters = true, .extent = 100};
  EXPECT_EQ(plan_loop(filter, with_vectors(16)).kind, LoopKind::kSerial);
  EXPECT_EQ(plan_loop(filter, with_vectors(32)).kind, LoopKind::kFilter);
  const LaneRead read{.lanes = 8, .elements = 64, .first = 0, .last = 7};
  EXPECT_TRUE(is_permuted(read, with_vectors(32)));
  EXPECT_FALSE(is_permuted(read, with_vectors(16)));
  LaneRead other = read;
  other.last = 8;
  EXPECT_FALSE(is_permuted(other, with_vectors(32))) << "two vectors";
  other = read;
  other.elements = 60;
  EXPECT_FALSE(is_permuted(other, with_vectors(32))) << "the last vector is not whole";
}

}  // namespace
}  // namespace hone::target
