#include <gtest/gtest.h>

#include <algorithm>

#include "hone/base/rng.h"
#include "hone/compute/dag_testing.h"
#include "hone/ir/printer.h"
#include "hone/schedule/schedule_testing.h"
#include "hone/space/rules/cpu/dot_testing.h"
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
  EXPECT_EQ(sketches(dot_product({.n = 64, .k = 9973})), 1) << "the last part is shorter";
  EXPECT_EQ(sketches(few_columns(64, 3, 4096, false)), 1);
  EXPECT_EQ(sketches(few_columns(64, 1, 9973, true)), 1);
  EXPECT_EQ(sketches(compute::testing::global_pool(112, 112, 32)), 1) << "rows of an image";
  EXPECT_EQ(sketches(compute::testing::global_pool(28, 28, 240)), 1);
  EXPECT_EQ(sketches(compute::testing::global_pool(7, 7, 32)), 0);
  EXPECT_EQ(sketches(dot_product({.n = 4096, .k = 25088})), 0);  // work for all without
  EXPECT_EQ(sketches(dot_product({.n = 64, .k = 1024})), 0);     // too little for a second phase
}

TEST(split_sum, its_parts_are_fixed_by_the_schedule_and_added_up) {
  const target::Target target = narrow(16);
  const compute::Dag dags[] = {dot_product({.m = 1, .n = 40, .k = 16384}),
                               dot_product({.m = 1, .n = 33, .k = 16381}),
                               few_columns(13, 3, 16381, false), few_columns(33, 1, 16381, true)};
  for (const compute::Dag& dag : dags) {
    const Result<Space> space = Space::create(dag, target);
    ASSERT_TRUE(space.ok()) << space.status().message();
    Rng rng(5);
    int seen = 0;
    for (int i = 0; i < 80 && seen < 2; ++i) {
      const Point point = space->sample(rng);
      const schedule::Steps steps = space->steps(point);
      if (schedule::to_string(steps).find("(matmul.rf,") == std::string::npos &&
          schedule::to_string(steps).find("(matmul.acc.rf,") == std::string::npos)
        continue;
      if (schedule::to_string(steps).find(", strided)") != std::string::npos) continue;
      ++seen;
      SCOPED_TRACE(schedule::to_string(steps));
      schedule::expect_same(dag, steps);
      const Result<ir::Program> program = schedule::lower(dag, steps);
      ASSERT_TRUE(program.ok());
      EXPECT_GE(program->phases.size(), 2U);
    }
    EXPECT_GT(seen, 0);
  }
}

// Means of an image's channels: whole rows make a part, of any number and length of rows.
TEST(split_sum, parts_of_an_image_are_rows) {
  for (const auto& [h, w] : {std::pair{112, 112}, {97, 131}, {31, 224}, {224, 33}}) {
    const compute::Dag dag = compute::testing::global_pool(h, w, 33);
    const Result<Space> space = Space::create(dag, narrow(16));
    ASSERT_TRUE(space.ok()) << space.status().message();
    const int sketch = space->num_sketches() - 1;
    const std::vector<Decision>& decisions = space->decisions(sketch);
    const auto parts = std::ranges::find_if(
        decisions, [](const Decision& d) { return d.name.ends_with(".parts"); });
    ASSERT_NE(parts, decisions.end());
    for (size_t i = 0; i < parts->options.size(); ++i) {
      Point point = space->default_point(sketch);
      point.choices[static_cast<size_t>(parts - decisions.begin())] = static_cast<int>(i);
      const schedule::Steps steps = space->steps(point);
      SCOPED_TRACE(fmt::format("{} x {}\n{}", h, w, schedule::to_string(steps)));
      ASSERT_TRUE(space->legal(point));
      schedule::expect_same(dag, steps, 1e-5);
    }
  }
}

// 16,381 terms in two parts: of the second one only what is left in the end is tested.
TEST(split_sum, parts_that_do_not_divide_are_tested_at_their_end_only) {
  const target::Target target = narrow(16);
  const compute::Dag dag = dot_product({.m = 1, .n = 40, .k = 16381});
  const Result<Space> space = Space::create(dag, target);
  ASSERT_TRUE(space.ok());
  const Point point = space->default_point(space->num_sketches() - 1);
  const Result<ir::Program> program = schedule::lower(dag, space->steps(point));
  ASSERT_TRUE(program.ok()) << program.status().message();
  const std::string text = ir::print(*program);
  // The loop that both parts have in full is over before anything is tested, in the next one.
  const size_t full = text.find("in 0..2047 {"), test = text.find("if ");
  ASSERT_NE(full, std::string::npos) << text;
  ASSERT_NE(test, std::string::npos) << text;
  ASSERT_LT(full, test) << text;
  const std::string between = text.substr(full, test - full);
  EXPECT_GE(std::ranges::count(between, '}') + 1, std::ranges::count(between, '{')) << text;
}

}  // namespace
}  // namespace hone::space
