#include "hone/compute/regions.h"

#include <gtest/gtest.h>

#include "hone/base/rng.h"
#include "hone/compute/dag_testing.h"

namespace hone::compute {
namespace {

using Dims = std::vector<int64_t>;

Region box(Dims shape, Dims low, Dims high) {
  return {std::move(shape), std::move(low), std::move(high)};
}

TEST(regions, boxes_meet_if_they_meet_along_each_dimension) {
  const Region left = box({4, 8}, {0, 0}, {4, 3});
  EXPECT_TRUE(disjoint(left, box({4, 8}, {0, 3}, {4, 8})));
  EXPECT_FALSE(disjoint(left, box({4, 8}, {0, 2}, {4, 8})));
  EXPECT_TRUE(disjoint(box({4, 8}, {0, 0}, {2, 8}), box({4, 8}, {2, 0}, {4, 8})));
  EXPECT_TRUE(disjoint(left, Region::none({4, 8})));
  EXPECT_FALSE(disjoint(left, Region::whole({4, 8})));
  EXPECT_FALSE(disjoint(Region::whole({}), Region::whole({}))) << "one element";
  EXPECT_TRUE(disjoint(Region::whole({}), Region::none({})));
}

TEST(regions, of_other_dimensions_are_compared_element_by_element) {
  // Channels [0, 3) and [3, 8) of 2 x 2 points, as four dimensions, as two, and as one.
  const Region first = box({1, 2, 2, 8}, {0, 0, 0, 0}, {1, 2, 2, 3});
  EXPECT_TRUE(disjoint(first, box({4, 8}, {0, 3}, {4, 8})));
  EXPECT_FALSE(disjoint(first, box({4, 8}, {0, 2}, {4, 8})));
  EXPECT_FALSE(disjoint(first, box({32}, {3}, {32}))) << "between the two there are others";
  EXPECT_TRUE(disjoint(box({2, 2, 8}, {0, 0, 0}, {1, 2, 8}), box({4, 8}, {2, 0}, {4, 8})));
  EXPECT_FALSE(disjoint(box({4, 8}, {0, 0}, {4, 3}), box({4, 9}, {0, 3}, {4, 9})))
      << "not the same elements: nothing is known";
}

TEST(regions, are_never_called_disjoint_if_they_share_an_element) {
  const std::vector<Dims> shapes = {{24}, {2, 12}, {4, 6}, {2, 3, 4}, {1, 24, 1}, {3, 2, 2, 2}};
  const auto contains = [](const Region& region, int64_t element) {
    for (size_t d = region.shape.size(); d-- > 0;) {
      const int64_t at = element % region.shape[d];
      element /= region.shape[d];
      if (at < region.low[d] || at >= region.high[d]) return false;
    }
    return true;
  };
  Rng rng(3);
  int apart = 0;
  for (int round = 0; round < 2000; ++round) {
    Region regions[2];
    for (Region& region : regions) {
      region = Region::whole(shapes[static_cast<size_t>(rng.below(std::ssize(shapes)))]);
      for (size_t d = 0; d < region.shape.size(); ++d) {
        region.low[d] = rng.below(region.shape[d]);
        region.high[d] = rng.between(region.low[d] + 1, region.shape[d]);
      }
    }
    bool shared = false;
    for (int64_t i = 0; i < 24; ++i) shared |= contains(regions[0], i) && contains(regions[1], i);
    if (!disjoint(regions[0], regions[1])) continue;
    EXPECT_FALSE(shared);
    ++apart;
  }
  EXPECT_GT(apart, 100);
}

TEST(regions, a_stage_touches_what_its_axes_reach) {
  DagBuilder b;
  const auto x = b.input("x", {8, 16});
  const auto y = b.output("y", {8, 32});
  const Axis h = make_axis("h", 6), c = make_axis("c", 16);
  const auto at = variables({h, c});
  b.pointwise("copy", {h, c}, View(y, {1, 8}, {6, 16}), load(x, {at[0] + 2, at[1]}));
  const Dag dag = testing::finish(std::move(b));
  const std::vector<Touched> touched = touched_regions(dag);
  ASSERT_EQ(touched.size(), 2u);
  EXPECT_EQ(touched[0].reads.low, (Dims{2, 0}));
  EXPECT_EQ(touched[0].reads.high, (Dims{8, 16}));
  EXPECT_TRUE(touched[0].writes.empty());
  EXPECT_EQ(touched[1].writes.low, (Dims{1, 8}));
  EXPECT_EQ(touched[1].writes.high, (Dims{7, 24}));
  EXPECT_TRUE(touched[1].reads.empty());
}

TEST(regions, reads_behind_a_guard_stay_inside_the_operand) {
  DagBuilder b;
  const auto x = b.input("x", {8});
  const auto y = b.output("y", {8});
  const Axis i = make_axis("i", 8), k = make_axis("k", 3);
  const ir::Expr at = ir::variable(i.var) + ir::variable(k.var) - 1;
  const ir::Expr inside = logical_and(less_equal(ir::constant(0), at), less(at, ir::constant(8)));
  b.sum("window", {i}, {k}, View(y), select(inside, load(x, {at}), ir::constant_float(0)));
  const Dag dag = testing::finish(std::move(b));
  const std::vector<Touched> touched = touched_regions(dag);
  EXPECT_EQ(touched[0].reads.low, (Dims{0}));
  EXPECT_EQ(touched[0].reads.high, (Dims{8}));
}

TEST(regions, of_an_extern_stage_are_whole_operands) {
  DagBuilder b;
  const auto x = b.input("x", {8});
  const auto y = b.output("y", {8});
  Stage stage;
  stage.name = stage.op = "sort";
  stage.axes = {make_axis("i", 1)};
  stage.outputs = {{.buffer = y}};
  stage.extern_reads = {x};
  stage.body = {ir::make_store(y, {ir::constant(0)}, load(x, {ir::constant(3)}))};
  b.add(stage);
  const Dag dag = testing::finish(std::move(b));
  const std::vector<Touched> touched = touched_regions(dag);
  EXPECT_EQ(touched[0].reads.high, (Dims{8}));
  EXPECT_EQ(touched[1].writes.high, (Dims{8}));
}

}  // namespace
}  // namespace hone::compute
