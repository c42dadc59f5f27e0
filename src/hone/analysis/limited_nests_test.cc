#include "hone/analysis/limited_nests.h"

#include <gtest/gtest.h>

#include "hone/base/rng.h"
#include "hone/compute/dag_testing.h"
#include "hone/ir/interpreter.h"
#include "hone/ir/passes/limit_loops.h"
#include "hone/schedule/schedule_testing.h"
#include "hone/space/space.h"

namespace hone::analysis {
namespace {

using namespace compute::testing;

// How many elements of the result a program stores at a size of the run.
int64_t stores_at(const ir::Program& program, const compute::Dag& dag, int64_t size) {
  const ir::BufferPtr sizes = ir::make_sizes(1);
  const ir::Param& result = dag.params.back();
  std::vector<ir::ParamLimit> limits = {{dag.params.size() - 1, {.form = 0, .dimension = 0}}};
  const ir::LimitedProgram limited =
      ir::limit_loops(program, limits, sizes, {.min_stores = 1, .min_stores_of_all = 1});
  std::vector<Tensor> arguments = schedule::integer_arguments(limited.program, 1);
  if (limited.changed) arguments.back().as<int64_t>()[0] = size;
  ir::TouchReport report;
  EXPECT_TRUE(ir::run(limited.program, arguments, {}, &report).ok());
  const ir::Touch* touch = report.find(result.buffer, true);
  return touch == nullptr ? 0 : touch->count;
}

void limit_nests(const space::Candidate& candidate, const std::vector<AxisPart>& parts,
                 std::vector<Nest>& nests) {
  std::vector<int64_t> points;
  for (const AxisPart& part : parts) points.push_back(part.points);
  NestLimits(candidate.state, candidate.bounds, parts, nests).shorten(points, nests);
}

// The nests that store the result, at a size of the run.
double iterations_at(const space::Candidate& candidate, const compute::Dag& dag, int64_t size) {
  std::vector<Nest> nests = build_nests(candidate.state, candidate.bounds);
  std::vector<AxisPart> parts;
  double all = 0;
  for (const Nest& nest : nests) {
    if (candidate.state.stages[static_cast<size_t>(nest.stage)].buffer() ==
        dag.params.back().buffer)
      parts.push_back({nest.stage, 0, size});
  }
  limit_nests(candidate, parts, nests);
  for (const Nest& nest : nests)
    if (nest.stage == parts.front().stage) all += nest.iterations() * nest.useful;
  return all;
}

TEST(limited_nests, whole_tiles_of_few_rows_are_what_the_interpreter_stores) {
  target::Cpu cpu;
  cpu.vector_bytes = 16;
  cpu.vector_registers = 16;
  cpu.caches = {{1, 2048, 64, 1, 64}, {2, 16384, 64, 1, 32}};
  const compute::Dag dag = gemm(32, 16, 12);
  const Result<space::Space> space = space::Space::create(dag, {.part = cpu});
  ASSERT_TRUE(space.ok());
  Rng rng(5);
  int exact = 0;
  for (int i = 0; i < 400 && exact < 12; ++i) {
    const Result<space::Candidate> candidate = space->instantiate(space->sample(rng));
    ASSERT_TRUE(candidate.ok());
    bool divides = true;
    for (const schedule::StageBounds& stage : candidate->bounds.stages)
      for (const schedule::AxisBounds& axis : stage.axes)
        divides = divides && axis.reach == axis.extent && !axis.guard_high;
    if (!divides) continue;
    const Result<ir::Program> program = schedule::lower(candidate->state, candidate->bounds);
    ASSERT_TRUE(program.ok());
    ++exact;
    for (const int64_t size : {1, 8, 16, 32}) {
      SCOPED_TRACE(fmt::format("size {}\n{}", size, schedule::to_string(candidate->steps)));
      const auto stores = static_cast<double>(stores_at(*program, dag, size));
      const double iterations = iterations_at(*candidate, dag, size);
      // A tile that is not whole runs as one; a serial loop inside it may end early.
      EXPECT_GE(iterations, stores);
      EXPECT_GE(stores, static_cast<double>(size * 16));
      if (size == 32) {
        EXPECT_EQ(iterations, 32 * 16);
      }
    }
  }
  EXPECT_GE(exact, 3);
}

// 40 rows in tiles of 8, which are unrolled: 9 rows take two tiles.
TEST(limited_nests, unrolled_rows_stay_whole) {
  const compute::Dag dag = gemm(40, 16, 12);
  const Result<space::Candidate> candidate = space::make_candidate(
      dag, *schedule::parse_steps("split(matmul, m, [8])\nreorder(matmul, [m.0, k, m.1, n])\n"
                                  "unroll(matmul, m.1)\nparallel(matmul, m.0)\n"));
  ASSERT_TRUE(candidate.ok()) << candidate.status().message();
  EXPECT_EQ(iterations_at(*candidate, dag, 1), 8 * 16 * 12);
  EXPECT_EQ(iterations_at(*candidate, dag, 9), 16 * 16 * 12);
  EXPECT_EQ(iterations_at(*candidate, dag, 40), 40 * 16 * 12);
}

// Of each 20 rows of 40, so many are needed.
TEST(limited_nests, parts_of_periods_end) {
  const compute::Dag dag = gemm(40, 16, 12);
  const Result<space::Candidate> candidate =
      space::make_candidate(dag, *schedule::parse_steps("split(matmul, m, [5, 4])\n"));
  ASSERT_TRUE(candidate.ok()) << candidate.status().message();
  std::vector<Nest> nests = build_nests(candidate->state, candidate->bounds);
  const std::vector<AxisPart> parts = {{nests[0].stage, 0, 3, 20}};
  limit_nests(*candidate, parts, nests);
  EXPECT_EQ(nests[0].iterations(), 2 * 1 * 3 * 16 * 12);
}

}  // namespace
}  // namespace hone::analysis
