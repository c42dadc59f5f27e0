#include "hone/analysis/body_nests.h"

#include <gtest/gtest.h>

#include "hone/compute/dag_testing.h"
#include "hone/space/space.h"

namespace hone::analysis {
namespace {

using namespace compute::testing;

std::vector<Nest> nests_of(const compute::Dag& dag, const char* steps = "") {
  const Result<space::Candidate> candidate =
      space::make_candidate(dag, *schedule::parse_steps(steps));
  HONE_ASSERT(candidate.ok(), candidate.status().message().c_str());
  EXPECT_TRUE(build_nests(candidate->state, candidate->bounds).empty());
  return build_body_nests(candidate->state, candidate->bounds);
}

std::vector<int64_t> extents(const Nest& nest) {
  std::vector<int64_t> found;
  for (const NestLoop& loop : nest.loops) found.push_back(loop.extent);
  return found;
}

// sum = 0; for k: sum += x[row, k]; y[row, k] = sum
TEST(body_nests, a_running_sum_has_a_nest_for_each_store) {
  const std::vector<Nest> nests = nests_of(running_sum(3, 5));
  ASSERT_EQ(nests.size(), 3U);
  EXPECT_EQ(extents(nests[0]), (std::vector<int64_t>{3}));
  EXPECT_EQ(extents(nests[1]), (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(nests[1].loops[1].loop, nests[2].loops[1].loop);
  EXPECT_TRUE(nests[1].loops[1].reduce);
  EXPECT_FALSE(nests[2].loops[1].reduce);
  EXPECT_EQ(nests[1].ops.add, 1);
  ASSERT_EQ(nests[1].accesses.size(), 3U);  // sum, x, and sum again
  EXPECT_EQ(nests[1].accesses[0].scope, ir::Scope::kStack);
  EXPECT_EQ(nests[1].accesses[0].footprint(nests[1].loops, 0), 1);
  const NestAccess& x = nests[1].accesses[1];
  EXPECT_EQ(x.footprint(nests[1].loops, 0), 15);
  EXPECT_EQ(x.footprint(nests[1].loops, 1), 5);
  EXPECT_EQ(x.stride(0), 5);
  EXPECT_EQ(x.stride(1), 1);
  EXPECT_TRUE(nests[2].accesses.back().write);
}

// Rows that lie side by side take their steps together: their loop goes inside the body's.
TEST(body_nests, loops_that_a_schedule_sinks_are_innermost) {
  const std::vector<Nest> nests =
      nests_of(running_sum(2, 7, 8), "sink(running_sum, column)\nvectorize(running_sum, column)\n");
  ASSERT_EQ(nests.size(), 3U);
  EXPECT_EQ(extents(nests[0]), (std::vector<int64_t>{2, 8}));
  EXPECT_EQ(extents(nests[1]), (std::vector<int64_t>{2, 7, 8}));
  EXPECT_EQ(nests[1].loops[2].annotation, schedule::Annotation::kVectorize);
  EXPECT_EQ(nests[1].accesses[1].stride(2), 1);
  EXPECT_EQ(nests[1].accesses[1].stride(1), 8);
}

TEST(body_nests, a_place_that_data_decides_may_be_anywhere_along_its_dimension) {
  const std::vector<Nest> nests =
      nests_of(gather_rows(4, 6, 100), "split(gather, i, [2])\nparallel(gather, i.0)\n");
  ASSERT_EQ(nests.size(), 1U);
  EXPECT_EQ(extents(nests[0]), (std::vector<int64_t>{2, 2, 6}));
  EXPECT_EQ(nests[0].loops[0].annotation, schedule::Annotation::kParallel);
  double table = 0, out = 0;
  for (const NestAccess& access : nests[0].accesses) {
    if (access.buffer->name == "data") table = access.footprint(nests[0].loops, 2);
    if (access.buffer->name == "out") out = access.footprint(nests[0].loops, 1);
  }
  EXPECT_EQ(table, 600);
  EXPECT_EQ(out, 12);
}

}  // namespace
}  // namespace hone::analysis
