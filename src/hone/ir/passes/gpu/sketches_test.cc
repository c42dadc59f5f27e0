// Kernels of GPUs as they are written by hand, in sketches/NAME.txt: the statements can say them,
// the interpreter runs them without races, and the results are those of plain loops. A kernel
// without one of its barriers fails the proof and the run.
#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/file.h"
#include "hone/ir/gpu/check_barriers.h"
#include "hone/ir/parser.h"
#include "hone/ir/passes/check_pass_testing.h"

namespace hone::ir {
namespace {

// The program with its barriers, and its arguments after a run that found no race.
struct SketchRun {
  Program program;
  std::vector<Tensor> args;
};
SketchRun run_sketch(std::string_view name) {
  const Result<std::string> text =
      read_file(std::string(HONE_SKETCHES) + "/" + std::string(name) + ".txt");
  EXPECT_TRUE(text.ok()) << text.status().message();
  const Result<Program> parsed = parse_program(*text);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  if (!parsed.ok()) return {};
  EXPECT_EQ(print(*parsed), text->substr(text->find("program"))) << "written as it prints";
  const Result<Program> made = run_pipeline(gpu_pipeline(), *parsed);
  EXPECT_TRUE(made.ok()) << made.status().message();
  if (!made.ok()) return {};
  SketchRun result{*made, random_arguments(*made, 1)};
  const Status ran = run(*made, result.args, {.check_races = true});
  EXPECT_TRUE(ran.ok()) << ran.message() << print(*made);
  return result;
}

int64_t expect_all_barriers_needed(const Program& program) {
  const std::vector<Program> fewer = testing::without_one_barrier(program);
  for (const Program& p : fewer) {
    EXPECT_FALSE(check_barriers(p).ok()) << print(p);
    std::vector<Tensor> args = random_arguments(p, 1);
    EXPECT_NE(run(p, args, {.check_races = true}).message().find("race for"), std::string::npos)
        << print(p);
  }
  return static_cast<int64_t>(fewer.size());
}

// Compares C with A * B, summed up in double.
void expect_product(const std::vector<Tensor>& args) {
  const int64_t m = args[0].shape()[0], k = args[0].shape()[1], n = args[1].shape()[1];
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += args[0].at(i * k + l) * args[1].at(l * n + j);
      ASSERT_NEAR(args[2].at(i * n + j), sum, 1e-4) << i << ", " << j;
    }
  }
}

TEST(sketches, a_product_on_hopper_by_warps_with_roles) {
  const SketchRun made = run_sketch("hopper_product");
  ASSERT_FALSE(made.args.empty());
  expect_product(made.args);
  EXPECT_EQ(expect_all_barriers_needed(made.program), 0) << "signals do it all";
}

TEST(sketches, a_product_on_cores_with_two_stages) {
  const SketchRun made = run_sketch("simt_product");
  ASSERT_FALSE(made.args.empty());
  expect_product(made.args);
  EXPECT_EQ(expect_all_barriers_needed(made.program), 2);
}

TEST(sketches, a_product_by_matrix_instructions_of_warps) {
  const SketchRun made = run_sketch("matrix_product");
  ASSERT_FALSE(made.args.empty());
  expect_product(made.args);
  EXPECT_EQ(expect_all_barriers_needed(made.program), 2);
}

TEST(sketches, attention_with_a_running_softmax) {
  const SketchRun made = run_sketch("flash_attention");
  ASSERT_FALSE(made.args.empty());
  const auto row = [&](size_t arg, int64_t i, int64_t d) { return made.args[arg].at(i * 16 + d); };
  for (int64_t i = 0; i < 64; ++i) {
    std::vector<double> score(64);
    double sum = 0;
    for (int64_t j = 0; j < 64; ++j) {
      for (int64_t d = 0; d < 16; ++d) score[j] += row(0, i, d) * row(1, j, d) * 0.25;
      score[j] = std::exp(score[j]);
      sum += score[j];
    }
    for (int64_t d = 0; d < 16; ++d) {
      double expected = 0;
      for (int64_t j = 0; j < 64; ++j) expected += score[j] / sum * row(2, j, d);
      // Weights are rounded to half precision.
      ASSERT_NEAR(row(3, i, d), expected, 2e-3) << i << ", " << d;
    }
  }
  EXPECT_EQ(expect_all_barriers_needed(made.program), 1);
}

}  // namespace
}  // namespace hone::ir
