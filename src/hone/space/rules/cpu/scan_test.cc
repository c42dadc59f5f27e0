#include <gtest/gtest.h>

#include "hone/compute/dag_testing.h"
#include "hone/schedule/schedule_testing.h"
#include "hone/space/space.h"
#include "hone/space/space_testing.h"

namespace hone::space {
namespace {

using namespace compute::testing;

std::string default_steps(const compute::Dag& dag, int sketch = 0) {
  const Result<Space> space = Space::create(dag, narrow());
  return space.ok() ? schedule::to_string(space->steps(space->default_point(sketch))) : "";
}
bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(scan, rows_of_steps_side_by_side_run_in_vectors) {
  EXPECT_TRUE(contains(default_steps(running_sum(8, 40)), "vectorize(running_sum, k)"));
  EXPECT_TRUE(contains(default_steps(running_sum(8, 40)), "sink(running_sum, row.1)"));
  EXPECT_FALSE(contains(default_steps(running_sum(8, 400)), "sink(")) << "long enough alone";
  EXPECT_TRUE(contains(default_steps(running_sum(1, 40)), "vectorize(running_sum, k)"));
  EXPECT_FALSE(contains(default_steps(running_sum(8, 5)), "vectorize(")) << "few steps";
  EXPECT_TRUE(contains(default_steps(running_sum(8, 40, 16)), "vectorize(running_sum, column.3)"))
      << "columns";
  EXPECT_FALSE(contains(default_steps(running_sum(8, 40, 2)), "vectorize(")) << "steps lie apart";
}

// A row at one index: a gather without points of its own.
compute::Dag gather_row(int64_t n) {
  compute::Dag dag = gather_rows(1, n, 7);
  compute::Stage& stage = dag.stages[0];
  for (ir::Stmt& s : stage.body) s = ir::substitute(s, {{stage.axes[0].var, ir::constant(0)}});
  stage.axes.clear();
  return dag;
}

TEST(bodies, a_row_at_one_index_is_copied_by_vectors) {
  const int64_t lanes = narrow().cpu().lanes(4);
  EXPECT_TRUE(contains(default_steps(gather_row(8 * lanes)),
                       fmt::format("lift(gather, [j], {})", 4 * lanes)));
  EXPECT_TRUE(
      contains(default_steps(gather_row(3 * lanes)), fmt::format("lift(gather, [j], {})", lanes)));
  EXPECT_EQ(default_steps(gather_row(lanes + 1)), "");
  EXPECT_FALSE(contains(default_steps(gather_rows(5, 8 * lanes, 7)), "lift(")) << "many rows";
  const compute::Dag dag = gather_row(8 * lanes);
  const Result<Space> space = Space::create(dag, narrow());
  ASSERT_TRUE(space.ok());
  const Result<ir::Program> program = schedule::lower(dag, space->steps(space->default_point(0)));
  ASSERT_TRUE(program.ok()) << program.status().message();
  schedule::expect_close(schedule::outputs_of(compute::naive_program(dag), 1),
                         schedule::outputs_of(*program, 1), 1e-6);
}

// A gather whose points are elements.
compute::Dag gather_elements(int64_t rows, int64_t n) {
  compute::Dag dag = gather_rows(rows, n, 7);
  compute::Stage& stage = dag.stages[0];
  const ir::Stmt loop = stage.body[0];
  stage.axes.push_back({loop->var, n});
  stage.body = loop->body;
  return dag;
}

TEST(bodies, elements_of_a_row_follow_each_other) {
  EXPECT_EQ(default_steps(gather_elements(5, 48)), "parallel(gather, i)\n");
  EXPECT_TRUE(contains(default_steps(gather_elements(5, 8)), "fuse(gather, [i, j])")) << "short";
  EXPECT_EQ(default_steps(gather_elements(1, 4000)), "parallel(gather, i)\n");
  EXPECT_TRUE(contains(default_steps(gather_elements(1, 40'000)), "fuse(gather, [i, j])"))
      << "several threads share a row that is long";
  EXPECT_EQ(default_steps(gather_rows(5, 48, 7)), "parallel(gather, i)\n");
}

// Schedules from before there were vectors of steps.
TEST(scan, steps_may_be_taken_one_by_one) {
  const Result<Space> space = Space::create(running_sum(8, 40), narrow());
  ASSERT_TRUE(space.ok());
  const Result<schedule::Steps> before = schedule::parse_steps(
      "split(running_sum, row, [4])\nreorder(running_sum, [row.0, row.1])\n"
      "parallel(running_sum, row.0)\nsink(running_sum, row.1)\nunroll(running_sum, row.1)\n");
  ASSERT_TRUE(before.ok());
  const std::optional<Point> found = space->locate(*before);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(schedule::to_string(space->steps(*found)), schedule::to_string(*before));
}

TEST(scan, only_a_scan_of_the_body_is_vectorized) {
  const auto why = [](const compute::Dag& dag, const char* steps) {
    const Result<schedule::Steps> parsed = schedule::parse_steps(steps);
    return schedule::replay(dag, *parsed).status().message();
  };
  const compute::Dag sums = running_sum(2, 9);
  EXPECT_TRUE(contains(why(sums, "vectorize(running_sum, j)"), "running_sum has no loop j"));
  EXPECT_TRUE(contains(why(sums, "vectorize(running_sum, k)\nvectorize(running_sum, k)"),
                       "running_sum has a loop that is vectorized"));
  EXPECT_TRUE(contains(why(sums, "rfactor(running_sum, j, 2)"), "is no scan over j"));
  EXPECT_TRUE(contains(why(sums, "rfactor(running_sum, k, 9)"), "k of 9 in parts of 9"));
}

TEST(scan, any_parts_of_rows_compute_the_same) {
  for (const int64_t n : {2, 3, 7, 13, 17, 31, 33, 97, 224}) {
    for (const int64_t factor : {1, 2, 5, 16}) {
      if (factor >= n) continue;
      const std::string cut = fmt::format("rfactor(running_sum, k, {})\n", factor);
      schedule::expect_same(running_sum(3, n), cut + "vectorize(running_sum, k)", 1e-5);
      schedule::expect_same(running_sum(3, n), cut, 1e-5);
    }
  }
}

TEST(scan, few_long_rows_may_be_cut_into_parts_for_several_threads) {
  const compute::Dag dag = running_sum(1, 1 << 18);
  target::Target target = narrow(64);
  const Result<Space> two = Space::create(dag, target);
  ASSERT_TRUE(two.ok() && two->num_sketches() == 2);
  EXPECT_TRUE(two->is_for_threads(1)) << "what is read twice is no default for two threads";
  target.cpu().cores = 4;
  const Result<Space> space = Space::create(dag, target);
  ASSERT_TRUE(space.ok() && space->num_sketches() == 2);
  EXPECT_TRUE(space->is_for_threads(0));
  EXPECT_FALSE(space->is_for_threads(1));
  const Result<ir::Program> program = schedule::lower(dag, space->steps(space->default_point(0)));
  ASSERT_TRUE(program.ok());
  ASSERT_EQ(program->phases.size(), 2U);
  EXPECT_EQ(program->phases[0].num_tiles(), 7) << "totals of all parts but the last";
  EXPECT_EQ(program->phases[1].num_tiles(), 8);
  const auto sketches = [](const compute::Dag& other) {
    return Space::create(other, narrow(64))->num_sketches();
  };
  EXPECT_EQ(sketches(running_sum(1, 1 << 17)), 1) << "too short";
  EXPECT_EQ(sketches(running_sum(2, 1 << 18)), 1) << "work for all without";
  EXPECT_EQ(sketches(running_sum(1, 1 << 15, 8)), 1) << "steps lie apart";
}

}  // namespace
}  // namespace hone::space
