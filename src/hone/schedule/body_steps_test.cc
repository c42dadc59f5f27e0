#include <gtest/gtest.h>

#include "hone/compute/dag_testing.h"
#include "hone/ir/printer.h"
#include "hone/ir/visit.h"
#include "hone/schedule/schedule_testing.h"

namespace hone::schedule {
namespace {

using namespace compute::testing;

// Expects a schedule to compute what the naive program does, and returns its text.
std::string expect_right(const compute::Dag& dag, std::string_view text) {
  const Result<Steps> steps = parse_steps(text);
  EXPECT_TRUE(steps.ok()) << steps.status().message();
  const Result<ir::Program> program = lower(dag, *steps);
  EXPECT_TRUE(program.ok()) << program.status().message();
  if (!program.ok()) return "";
  expect_close(outputs_of(compute::naive_program(dag), 1), outputs_of(*program, 1), 1e-6);
  return ir::print(*program);
}

std::string error_of(const compute::Dag& dag, std::string_view text) {
  return replay(dag, *parse_steps(text)).status().message();
}

TEST(body_steps, lifted_loops_are_axes) {
  const compute::Dag dag = gather_rows(5, 12, 7);
  for (const char* vector : {"1", "2", "4", "12"}) {
    const std::string lift = fmt::format("lift(gather, [j], {})\n", vector);
    expect_right(dag, lift);
    expect_right(dag, lift + "fuse(gather, [i, j])\nsplit(gather, i@j, [4])\n");
  }
  const std::string program = expect_right(dag, "lift(gather, [j], 4)\nreorder(gather, [j, i])");
  EXPECT_NE(program.find("vectorized v in 0..4"), std::string::npos) << program;
}

TEST(body_steps, what_depends_on_other_iterations_is_not_lifted) {
  const compute::Dag gather = gather_rows(5, 12, 7);
  EXPECT_NE(error_of(gather, "lift(gather, [j], 5)").find("no vectors of 5"), std::string::npos);
  EXPECT_NE(error_of(gather, "lift(gather, [k], 1)").find("no loop k"), std::string::npos);
  EXPECT_NE(error_of(gather, "lift(gather, [], 1)").find("no loop of"), std::string::npos);
  EXPECT_NE(error_of(gather, "split(gather, i, [2])\nlift(gather, [j], 1)").find("already"),
            std::string::npos);
  // A sum runs along its loop, and updates meet in rows.
  EXPECT_NE(error_of(running_sum(3, 7), "lift(running_sum, [k], 1)").find("no loop k"),
            std::string::npos);
  EXPECT_NE(error_of(add_rows(5, 3, 4), "lift(add_rows, [u], 1)").find("no loop u"),
            std::string::npos);
  EXPECT_NE(error_of(gemm(3, 4, 5), "lift(matmul, [k], 1)").find("has no body"), std::string::npos);
}

// Each row of the result has several updates, the first ones of which are applied first.
TEST(body_steps, updates_are_applied_in_their_order) {
  for (const int64_t rows : {1, 2, 3, 33}) {
    for (const int64_t updates : {1, 2, 7, 31}) {
      const compute::Dag dag = add_rows(rows, 3, updates);
      expect_right(dag, "split_updates(add_rows)");
      expect_right(dag,
                   "split_updates(add_rows)\nlift(add_rows, [k], 1)\n"
                   "reorder(add_rows, [k, u])\nfuse(add_rows, [k, u])");
    }
  }
}

TEST(body_steps, only_a_copy_with_updates_is_divided) {
  for (const compute::Dag& dag : {gather_rows(5, 12, 7), running_sum(3, 7)}) {
    const std::string step = fmt::format("split_updates({})", dag.stages[0].name);
    EXPECT_NE(error_of(dag, step).find("does not copy and then update"), std::string::npos);
  }
}

TEST(body_steps, a_block_shares_what_selects) {
  EXPECT_NE(error_of(gather_rows(5, 12, 7), "block_body(gather, 64)").find("no body"),
            std::string::npos);
  for (const char* threads : {"16", "48", "2048"}) {
    EXPECT_NE(error_of(running_sum(3, 70), fmt::format("block_body(running_sum, {})", threads))
                  .find("a power of 2"),
              std::string::npos);
  }
  // What is read beside the sum is not there behind the last element.
  compute::Dag scaled = running_sum(3, 70);
  compute::Stage& stage = scaled.stages[0];
  stage.body[0] = ir::rewrite_stmts(stage.body[0], [&](const ir::Stmt& s) {
    if (s->kind != ir::StmtKind::kStore || s->buffer != stage.outputs[0].buffer) return s;
    return ir::make_store(s->buffer, s->indices,
                          s->value * ir::load(stage.extern_reads[0], s->indices));
  });
  EXPECT_NE(error_of(scaled, "block_body(running_sum, 32)").find("no body"), std::string::npos);
  const auto state = replay(running_sum(3, 70), *parse_steps("block_body(running_sum, 32)"));
  EXPECT_TRUE(state.ok()) << state.status().message();
}

}  // namespace
}  // namespace hone::schedule
