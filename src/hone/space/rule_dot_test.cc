#include <gtest/gtest.h>

#include "hone/compute/dag_testing.h"
#include "hone/schedule/schedule_testing.h"
#include "hone/space/dot_testing.h"
#include "hone/space/space.h"
#include "hone/space/space_testing.h"

namespace hone::space {
namespace {

using namespace compute::testing;

bool has_step(const Space& space, const Point& point, std::string_view word) {
  return schedule::to_string(space.steps(point)).find(word) != std::string::npos;
}

TEST(dot, the_lanes_run_along_the_sum_where_results_are_few_or_far_apart) {
  const auto way = [](const compute::Dag& dag) {
    const Result<Space> space = Space::create(dag, narrow(64));
    if (!space.ok()) return std::string("none");
    std::string ways;
    for (int sketch = 0; sketch < space->num_sketches(); ++sketch)
      ways += has_step(*space, space->default_point(sketch), "strided") ? "dot " : "direct ";
    return ways;
  };
  EXPECT_EQ(way(dot_product({.n = 2, .k = 768})), "dot direct ");
  EXPECT_EQ(way(dot_product({.n = 1, .k = 768, .constant = false})), "dot direct ");
  EXPECT_EQ(way(dot_product({.n = 8, .k = 768})), "direct dot ");
  // The rows of an input are its columns' neighbours in memory: lanes along them would gather.
  EXPECT_EQ(way(dot_product({.m = 64, .n = 64, .k = 64, .constant = false})), "dot direct ");
  EXPECT_EQ(way(dot_product({.m = 64, .n = 64, .k = 64})), "direct ");
  EXPECT_EQ(way(dot_product({.n = 2, .k = 15})), "direct ");
}

TEST(dot, every_point_computes_the_same_for_odd_shapes) {
  const target::Target target = narrow(32);
  Rng rng(11);
  for (const int64_t k : {8, 13, 17, 31, 33, 97}) {
    for (const int64_t n : {1, 2, 3, 7, 8}) {
      for (const bool constant : {true, false}) {
        const int64_t m = rng.choice<int64_t>({1, 2, 3, 13});
        const compute::Dag dag = dot_product({.m = m, .n = n, .k = k, .constant = constant});
        const Result<Space> space = Space::create(dag, target);
        ASSERT_TRUE(space.ok()) << space.status().message();
        ASSERT_EQ(space->num_sketches(), 2);
        for (int i = 0; i < 4; ++i) {
          const Point point = i < 2 ? space->default_point(i) : space->sample(rng);
          SCOPED_TRACE(fmt::format("{}x{}x{}", m, n, k));
          schedule::expect_same(dag, space->steps(point));
          if (::testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

TEST(split_sum, a_long_sum_of_few_results_is_cut_into_parts) {
  const auto sketches = [](const compute::Dag& dag) {
    const Result<Space> space = Space::create(dag, narrow(64));
    int parts = 0;
    for (int s = 0; space.ok() && s < space->num_sketches(); ++s) {
      for (const Decision& decision : space->decisions(s))
        parts += decision.name.ends_with(".parts") ? 1 : 0;
    }
    return parts;
  };
  EXPECT_EQ(sketches(dot_product({.n = 64, .k = 25088})), 1);
  EXPECT_EQ(sketches(dot_product({.n = 8, .k = 131072})), 1);
  EXPECT_EQ(sketches(dot_product({.n = 4096, .k = 25088})), 0);  // work for all without
  EXPECT_EQ(sketches(dot_product({.n = 64, .k = 1024})), 0);     // too little for a second phase
}

TEST(split_sum, its_parts_are_fixed_by_the_schedule_and_added_up) {
  const target::Target target = narrow(16);
  const compute::Dag dag = dot_product({.m = 1, .n = 40, .k = 16384});
  const Result<Space> space = Space::create(dag, target);
  ASSERT_TRUE(space.ok());
  Rng rng(5);
  int seen = 0;
  for (int i = 0; i < 40 && seen < 2; ++i) {
    const Point point = space->sample(rng);
    const schedule::Steps steps = space->steps(point);
    if (schedule::to_string(steps).find("(matmul.rf,") == std::string::npos) continue;
    ++seen;
    SCOPED_TRACE(schedule::to_string(steps));
    schedule::expect_same(dag, steps);
    const Result<ir::Program> program = schedule::lower(dag, steps);
    ASSERT_TRUE(program.ok());
    EXPECT_GE(program->phases.size(), 2U);
  }
  EXPECT_GT(seen, 0);
}

}  // namespace
}  // namespace hone::space
