// Constants in fewer bits: the step narrow.
#include "hone/compute/dag_testing.h"
#include "hone/schedule/schedule_testing.h"

namespace hone::schedule {
namespace {

using compute::testing::conv2d;
using compute::testing::gemm;

Steps parse(const std::string& text) {
  const Result<Steps> steps = parse_steps(text);
  EXPECT_TRUE(steps.ok()) << steps.status().message();
  return steps.ok() ? *steps : Steps();
}

// Small integers are exact in 8 bits: only the type changes.
TEST(narrow, weights_that_fit_give_the_same_results) {
  expect_same(gemm(13, 24, 9), std::string(kGemmTile) + "narrow(weight.cache, bf16)\n");
  expect_same(conv2d({.ic = 6, .oc = 24}),
              "cache_read(weight, conv2d)\nlayout(weight.cache, [oc/8, kh, kw, ic, oc%8])\n"
              "narrow(weight.cache, bf16)\n");
}

TEST(narrow, takes_half_the_bytes_and_rounds_once) {
  const compute::Dag dag = gemm(1, 1, 1);
  const Result<ir::Program> program =
      lower(dag, parse("cache_read(weight, matmul)\nnarrow(weight.cache, bf16)\n"));
  ASSERT_TRUE(program.ok()) << program.status().message();
  std::vector<Tensor> args;
  int packed = 0;
  for (const ir::Param& param : program->params) {
    Tensor tensor(param.buffer->dtype, param.buffer->shape);
    if (param.role == ir::Role::kInput) tensor.set(0, 3);
    if (param.role == ir::Role::kConstant) tensor.set(0, 1.0 + 0x1p-8);
    if (param.role == ir::Role::kPacked) {
      EXPECT_EQ(param.buffer->dtype, DType::kBF16);
      ++packed;
    }
    args.push_back(std::move(tensor));
  }
  EXPECT_EQ(packed, 1);
  ASSERT_TRUE(ir::run(*program, args).ok());
  for (size_t i = 0; i < args.size(); ++i) {
    if (program->params[i].role != ir::Role::kOutput) continue;
    EXPECT_EQ(args[i].at(0), 3);
  }
}

TEST(narrow, is_part_of_the_name_of_the_algorithm) {
  EXPECT_EQ(algorithm_of(parse("narrow(weight.cache, bf16)")), "direct_bf16");
  EXPECT_EQ(algorithm_of(parse("winograd(conv2d, 4)\nnarrow(conv2d.u, bf16)")), "winograd_4_bf16");
}

TEST(narrow, refuses_what_is_not_made_at_compile_time) {
  const compute::Dag dag = gemm(4, 8, 4);
  EXPECT_NE(refusal(dag, "narrow(matmul, bf16)").find("does not run at compile time"),
            std::string::npos);
  EXPECT_NE(refusal(dag, "cache_read(data, matmul)\nnarrow(data.cache, bf16)")
                .find("does not run at compile time"),
            std::string::npos);
  EXPECT_NE(
      refusal(dag, "cache_read(weight, matmul)\nnarrow(weight.cache, f16)").find("expected bf16"),
      std::string::npos);
  EXPECT_NE(refusal(dag,
                    "cache_read(weight, matmul)\nnarrow(weight.cache, bf16)\n"
                    "narrow(weight.cache, bf16)")
                .find("expected f32"),
            std::string::npos);
  EXPECT_NE(refusal(dag, "narrow(nothing, bf16)").find("no stage nothing"), std::string::npos);
}

}  // namespace
}  // namespace hone::schedule
