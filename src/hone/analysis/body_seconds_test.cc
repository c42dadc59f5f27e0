#include "hone/analysis/body_seconds.h"

#include <gtest/gtest.h>

#include "hone/compute/dag_testing.h"

namespace hone::analysis {
namespace {

using namespace compute::testing;

target::Cpu cpu(int64_t vector_bytes = 32) {
  target::Cpu cpu;
  cpu.ghz = 2;
  cpu.vector_bytes = static_cast<int>(vector_bytes);
  return cpu;
}

TEST(body_seconds, of_a_running_sum_grow_with_rows_and_their_length) {
  const double one = body_seconds(running_sum(10, 1000), cpu());
  EXPECT_GT(one, 10 * 1000 * 0.25 / 2e9);  // an operation for each element at least
  EXPECT_LT(one, 10 * 1000 * 25 / 2e9);
  EXPECT_NEAR(body_seconds(running_sum(20, 1000), cpu()), 2 * one, 1e-9 * one);
  EXPECT_NEAR(body_seconds(running_sum(10, 2000), cpu()), 2 * one, 0.01 * one);
}

// for r: B[r] = 0, on lanes
compute::Dag cleared(int64_t rows) {
  compute::DagBuilder builder;
  const compute::Axis part = compute::make_axis("part", 4);
  const ir::BufferPtr out = builder.output("out", {4, rows});
  compute::Stage stage;
  stage.name = stage.op = "clear";
  stage.axes = {part};
  const ir::VarPtr r = ir::make_var("r");
  stage.body = {ir::make_for(
      r, ir::constant(0), ir::constant(rows), ir::ForKind::kVectorized,
      {ir::make_store(out, {ir::variable(part.var), ir::variable(r)}, ir::constant_float(0))})};
  stage.outputs.push_back({.buffer = out});
  builder.add(std::move(stage));
  return std::move(builder).build().value();
}

TEST(body_seconds, lanes_share_a_vectorized_loop) {
  const double narrow = body_seconds(cleared(64), cpu(32));
  EXPECT_GT(narrow, 0);
  EXPECT_NEAR(narrow, 2 * body_seconds(cleared(64), cpu(64)), 1e-9 * narrow);
  EXPECT_EQ(body_seconds(gemm(8, 8, 8), cpu()), 0);
}

}  // namespace
}  // namespace hone::analysis
