// The representation carries what later issues need: products packed inside the loops, split over
// K, and whole convolution sketches. Odd shapes throughout.
#include "hone/compute/dag_testing.h"
#include "hone/schedule/schedule_testing.h"

namespace hone::schedule {
namespace {

using compute::testing::conv2d;
using compute::testing::ConvShape;
using compute::testing::gemm;

TEST(proof, gemm_with_register_tile_and_packed_weights) {
  for (const int64_t m : {1, 5, 6, 13}) expect_same(gemm(m, 19, 7), kGemmTile);
  expect_same(gemm(12, 16, 33), kGemmTile);
}

TEST(proof, gemm_packs_its_moving_operand_inside_the_loops) {
  const std::string steps = std::string(kGemmTile) + R"(
cache_read(data, matmul.acc)
compute_at(data.cache, matmul, m.0)
layout(data.cache, [m/6, k, m%6])
)";
  expect_same(gemm(17, 19, 11), steps);
  expect_same(gemm(12, 16, 8), steps);
}

TEST(proof, gemm_splits_k_over_threads) {
  for (const int64_t k : {1, 7, 32, 33}) {
    expect_same(gemm(5, 9, k), R"(
rfactor(matmul, k, 8)
reorder(matmul.rf, [ko, m, k, n])
parallel(matmul.rf, ko)
split(matmul.rf, n, [4])
vectorize(matmul.rf, n.1)
fuse(matmul, [m, n])
split(matmul, m@n, [4])
parallel(matmul, m@n.0)
)");
  }
}

TEST(proof, gemm_keeps_a_sum_in_lanes_along_k) {
  for (const int64_t k : {1, 7, 32, 33}) {
    expect_same(gemm(5, 3, k), R"(
rfactor(matmul, k, 8, strided)
parallel(matmul, m)
reorder(matmul, [m, n, ki])
compute_at(matmul.rf, matmul, m)
scope(matmul.rf, register)
layout(matmul.rf, [m, n, ki])
split(matmul.rf, k, [1], peel)
reorder(matmul.rf, [k.0, k.1, m, n, ki])
unroll(matmul.rf, k.1)
unroll(matmul.rf, m)
unroll(matmul.rf, n)
vectorize(matmul.rf, ki)
unroll(matmul, n)
vectorize(matmul, ki)
)");
  }
}

TEST(proof, gemm_blocks_k_in_cache) {
  expect_same(gemm(7, 10, 29), R"(
rfactor(matmul, k, 8)
split(matmul, n, [4])
reorder(matmul, [ko, m, n.0, n.1])
compute_at(matmul.rf, matmul, n.0)
scope(matmul.rf, register)
reorder(matmul.rf, [ko, m, k, n])
vectorize(matmul.rf, n)
vectorize(matmul, n.1)
)");
}

TEST(proof, convolution_with_fused_epilogue_register_tile_and_every_tail) {
  for (const std::string_view tail : {"mask", "peel", "pad"}) {
    std::string steps = fmt::format(R"(
inline(bias)
cache_read(weight, conv2d)
layout(weight.cache, [oc/8, kh, kw, ic, oc%8])
split(relu, ow, [5], {})
split(relu, oc, [2, 4], pad)
reorder(relu, [n, oc.0, oh, ow.0, ow.1, oc.1, oc.2])
fuse(relu, [n, oc.0, oh])
parallel(relu, n@oc.0@oh)
unroll(relu, ow.1)
unroll(relu, oc.1)
vectorize(relu, oc.2)
compute_at(conv2d, relu, ow.0)
scope(conv2d, register)
split(conv2d, oc, [4])
reorder(conv2d, [n, oh, kh, kw, ic, ow, oc.0, oc.1])
unroll(conv2d, n)
unroll(conv2d, oh)
unroll(conv2d, ow)
unroll(conv2d, oc.0)
vectorize(conv2d, oc.1)
)",
                                    tail == "pad" ? "mask" : tail);
    for (const int64_t stride : {1, 2}) {
      expect_same(conv2d({.h = 7, .w = 13, .ic = 3, .oc = 17, .stride = stride}), steps);
    }
    expect_same(conv2d({.h = 5, .w = 5, .ic = 2, .oc = 8, .residual = true}),
                "inline(add)" + steps);
  }
}

TEST(proof, a_padded_tail_that_reads_beyond_its_input_is_refused) {
  const Result<Steps> steps = parse_steps(R"(
inline(bias)
split(relu, ow, [5], pad)
compute_at(conv2d, relu, ow.0)
)");
  ASSERT_TRUE(steps.ok());
  const Result<ir::Program> program = lower(conv2d({.h = 7, .w = 13, .ic = 3, .oc = 17}), *steps);
  ASSERT_FALSE(program.ok());
  EXPECT_NE(program.status().message().find("padded tail"), std::string::npos)
      << program.status().message();
}

}  // namespace
}  // namespace hone::schedule
