// Programs of schedules in runs of smaller sizes: what is needed stays right, and the rest costs
// nothing.
#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/rng.h"
#include "hone/compute/dag_testing.h"
#include "hone/ir/passes/limit_loops_testing.h"
#include "hone/ir/printer.h"
#include "hone/schedule/random_schedule_testing.h"
#include "hone/schedule/schedule_testing.h"

namespace hone::schedule {
namespace {

using ir::testing::LimitCase;
using ir::testing::LimitRun;
using ir::testing::run_limited;

size_t output_of(const ir::Program& program) {
  size_t p = 0;
  while (program.params[p].role != ir::Role::kOutput) ++p;
  return p;
}

// Expects the operations of a run with these sizes to be at most `share` of those of all.
void expect_share(const compute::Dag& dag, std::string_view steps,
                  const std::vector<ir::SizeLimit>& limits, const std::vector<int64_t>& sizes,
                  double share) {
  const Result<ir::Program> program = lower(dag, *parse_steps(steps));
  ASSERT_TRUE(program.ok()) << program.status().message();
  LimitCase given{{}, sizes};
  for (const ir::SizeLimit& limit : limits) given.limits.push_back({output_of(*program), limit});
  const LimitRun run = run_limited(*program, given, 1, ir::testing::kAllLoops);
  EXPECT_EQ(run.difference, "") << ir::print(run.limited.program);
  EXPECT_LE(static_cast<double>(run.after), static_cast<double>(run.before) * share)
      << ir::print(run.limited.program);
}

TEST(limited_sizes, rows_of_a_product) {
  const compute::Dag dag = compute::testing::gemm(96, 32, 16);
  expect_share(dag, "", {{.form = 0}}, {24}, 0.26);
  // Tiles of 6 rows.
  expect_share(dag, kGemmTile, {{.form = 0}}, {24}, 0.32);
  expect_share(dag, kGemmTile, {{.form = 0}}, {1}, 0.15);
  // Merged rows: 8 of 12, of which 2 x 5 are needed.
  expect_share(dag, kGemmTile, {{.form = 0, .unit = 12}, {.form = 1, .period = 12}}, {2, 5}, 0.32);
  const ir::Program program = *lower(dag, *parse_steps(kGemmTile));
  const ir::LimitedProgram limited =
      ir::limit_loops(program, {{output_of(program), {.form = 0, .unit = 12}}}, ir::make_sizes(1));
  EXPECT_EQ(limited.tiles.back(), (ir::TileLimit{0, 1, 2}));
}

TEST(limited_sizes, rows_of_softmax_and_norms) {
  expect_share(compute::testing::softmax(40, 24, 1), "", {{.form = 0}}, {10}, 0.27);
  expect_share(compute::testing::normalized_rows(40, 24), "", {{.form = 0}}, {10}, 0.27);
  expect_share(compute::testing::transpose(24, 8, 8, 0), "", {{.form = 0, .dimension = 1}}, {2},
               0.3);
}

TEST(limited_sizes, queries_of_attention) {
  const compute::Dag dag = compute::testing::attention(2, 32, 32, 8, 0);
  // 8 of 32 queries; then 1 of 2 heads, too.
  expect_share(dag, "", {{.form = 0}}, {8}, 0.27);
  expect_share(dag, "", {{.form = 0}, {.form = 1, .dimension = 1}}, {8, 1}, 0.14);
}

// Attention whose reductions over keys end at sizes[0]; masks hide what lies beyond.
compute::Dag with_ends(compute::Dag dag, const ir::BufferPtr& sizes) {
  dag.params.push_back({sizes, ir::Role::kInput});
  for (compute::Stage& stage : dag.stages) {
    if (!stage.reduce.empty() && stage.reduce[0].var->name == "r")
      stage.until = ir::load(sizes, {ir::constant(0)});
  }
  return dag;
}

struct EndsRun {
  int64_t before = 0, after = 0;  // operations
  int limited = 0;                // inputs of which the keys beyond a place are not needed
};

// `of_outputs` are limits of the output by the number of keys, such as in self-attention.
EndsRun run_with_ends(const compute::Dag& dag, const Steps& steps, int64_t keys,
                      const std::vector<ir::SizeLimit>& of_outputs = {}) {
  EndsRun result;
  const ir::BufferPtr sizes = ir::make_sizes(1);
  const ir::Program whole = compute::naive_program(dag);
  const Result<ir::Program> ends = lower(with_ends(dag, sizes), steps);
  EXPECT_EQ(ends.ok(), lower(dag, steps).ok()) << ends.status().message();
  if (!ends.ok()) return result;
  std::vector<Tensor> want = ir::random_arguments(whole, 5);
  for (size_t i = 0; i < want.size(); ++i) {
    if (whole.params[i].buffer->name != "mask") continue;
    for (int64_t k = keys; k < want[i].size(); ++k) want[i].set(k, -HUGE_VAL);
  }
  const size_t out = output_of(whole);
  std::vector<ir::ParamLimit> given;
  for (const ir::SizeLimit& limit : of_outputs) given.push_back({out, limit});
  const ir::Program limited = ir::limit_loops(*ends, given, sizes, ir::testing::kAllLoops).program;
  std::vector<Tensor> got = ir::random_arguments(limited, 5);
  const ir::SizeLimits found(*ends, given, sizes);
  for (size_t i = 0; i < dag.params.size(); ++i) {
    got[i] = want[i].clone();
    const ir::Param& param = dag.params[i];
    if (param.role != ir::Role::kInput) continue;
    const std::vector<ir::SizeLimit> limits = found.of_param(param.buffer);
    result.limited += limits.empty() ? 0 : 1;
    for (int64_t e = 0; e < got[i].size(); ++e) {
      if (!ir::testing::is_needed(limits, {keys}, param.buffer->shape, e))
        got[i].set(e, std::numeric_limits<double>::quiet_NaN());
    }
  }
  got[dag.params.size()].set(0, static_cast<double>(keys));
  EXPECT_TRUE(ir::run(whole, want, {.operations = &result.before}).ok());
  const Status ran = ir::run(limited, got, {.operations = &result.after});
  EXPECT_TRUE(ran.ok()) << ran.message();
  for (int64_t e = 0; e < want[out].size(); ++e) {
    if (ir::testing::is_needed(of_outputs, {keys}, want[out].shape(), e)) continue;
    want[out].set(e, 0);
    got[out].set(e, 0);
  }
  expect_close({want[out]}, {got[out]}, 1e-5);
  return result;
}

TEST(limited_sizes, keys_of_attention) {
  const compute::Dag dag = compute::testing::attention(2, 8, 64, 8);
  for (const int64_t keys : {1, 16, 33, 64}) {
    const EndsRun run = run_with_ends(dag, {}, keys);
    EXPECT_LE(run.after, run.before * (keys + 8) / 64) << keys;
    EXPECT_EQ(run.limited, 3);  // keys, values and mask
  }
  Rng rng(3);
  int limited = 0;
  for (int i = 0; i < 60; ++i) {
    const Steps steps = random_steps(dag, rng, 25);
    SCOPED_TRACE(to_string(steps));
    limited += run_with_ends(dag, steps, rng.between(1, 64)).limited;
  }
  EXPECT_GT(limited, 60);
}

// The scores end at one size in both dimensions.
TEST(limited_sizes, queries_and_keys_of_self_attention) {
  const compute::Dag dag = compute::testing::attention(2, 64, 64, 8);
  const std::vector<ir::SizeLimit> queries = {{.form = 0}};
  for (const int64_t size : {1, 16, 33, 64}) {
    const EndsRun run = run_with_ends(dag, {}, size, queries);
    EXPECT_LE(run.after, run.before * (size * size + 640) / 4096) << size;
    EXPECT_EQ(run.limited, 4);  // queries, keys, values and mask
  }
  Rng rng(5);
  int limited = 0;
  for (int i = 0; i < 30; ++i) {
    const Steps steps = random_steps(dag, rng, 25);
    SCOPED_TRACE(to_string(steps));
    limited += run_with_ends(dag, steps, rng.between(1, 64), queries).limited;
  }
  EXPECT_GT(limited, 60);
}

TEST(limited_sizes, random_schedules) {
  Rng rng(7);
  int changed = 0, inputs = 0;
  for (int i = 0; i < 120; ++i) {
    const compute::Dag dag = random_dag(rng);
    const Steps steps = random_steps(dag, rng, 25);
    const Result<ir::Program> program = lower(dag, steps);
    ASSERT_TRUE(program.ok()) << program.status().message();
    const LimitCase limits = ir::testing::random_limits(*program, rng);
    const LimitRun run = run_limited(*program, limits, 3, ir::testing::kAllLoops);
    EXPECT_EQ(run.difference, "") << i << "\n"
                                  << ir::testing::describe(limits) << "\n"
                                  << to_string(steps) << ir::print(*program)
                                  << ir::print(run.limited.program);
    changed += run.changed ? 1 : 0;
    const ir::SizeLimits found(*program, limits.limits);
    for (const ir::Param& param : program->params)
      inputs += param.role == ir::Role::kInput && !found.of_param(param.buffer).empty() ? 1 : 0;
  }
  EXPECT_GT(changed, 60);
  EXPECT_GT(inputs, 40);
}

}  // namespace
}  // namespace hone::schedule
