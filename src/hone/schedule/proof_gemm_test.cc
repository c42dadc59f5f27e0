// The representation carries what later issues need: products packed inside the loops, split over
// K, and whole convolution sketches. Odd shapes throughout.
#include "hone/schedule/schedule_testing.h"

namespace hone::schedule {
namespace {

using compute::DagBuilder;
using compute::make_axis;
using compute::View;

compute::Dag gemm(int64_t m, int64_t n, int64_t k) {
  DagBuilder b;
  const auto data = b.input("data", {m, k}), weight = b.constant("weight", {k, n});
  const auto out = b.output("out", {m, n});
  const auto i = make_axis("m", m), j = make_axis("n", n), r = make_axis("k", k);
  const auto [vi, vj, vr] = std::tuple(ir::variable(i.var), ir::variable(j.var), ir::variable(r.var));
  b.sum("matmul", {i, j}, {r}, View(out), ir::load(data, {vi, vr}) * ir::load(weight, {vr, vj}));
  return built(std::move(b));
}

compute::Dag conv(int64_t h, int64_t w, int64_t ic, int64_t oc, int64_t stride, bool relu) {
  DagBuilder b;
  const int64_t oh = (h + 2 - 3) / stride + 1, ow = (w + 2 - 3) / stride + 1;
  const auto data = b.input("data", {1, h + 2, w + 2, ic}), weight = b.constant("weight", {oc, ic, 3, 3});
  const auto bias = b.constant("bias", {oc});
  const auto out = b.output("out", {1, oh + 2, ow + 2, oc});
  const auto sums = b.intermediate("conv2d", {1, oh, ow, oc});
  const auto axes = [&] {
    return std::vector<compute::Axis>{make_axis("n", 1), make_axis("oh", oh), make_axis("ow", ow), make_axis("oc", oc)};
  };
  const auto a = axes(), e = axes();
  const std::vector<compute::Axis> r = {make_axis("ic", ic), make_axis("kh", 3), make_axis("kw", 3)};
  const auto v = compute::variables(a), vr = compute::variables(r), ve = compute::variables(e);
  b.sum("conv2d", a, r, View(sums),
        ir::load(data, {v[0], v[1] * stride + vr[1], v[2] * stride + vr[2], vr[0]}) *
            ir::load(weight, {v[3], vr[0], vr[1], vr[2]}));
  ir::Expr value = ir::load(sums, ve) + ir::load(bias, {ve[3]});
  if (relu) value = ir::max(value, ir::constant_float(0));
  b.pointwise("relu", e, View(out, {0, 1, 1, 0}, {1, oh, ow, oc}), value);
  return built(std::move(b));
}

constexpr std::string_view kGemmTile = R"(
cache_write(matmul)
cache_read(weight, matmul.acc)
layout(weight.cache, [n/8, k, n%8])
split(matmul, m, [6], peel)
split(matmul, n, [2, 4], pad)
reorder(matmul, [m.0, n.0, m.1, n.1, n.2])
parallel(matmul, m.0)
unroll(matmul, m.1)
unroll(matmul, n.1)
vectorize(matmul, n.2)
compute_at(matmul.acc, matmul, n.0)
scope(matmul.acc, register)
split(matmul.acc, n, [4])
reorder(matmul.acc, [k, m, n.0, n.1])
unroll(matmul.acc, m)
unroll(matmul.acc, n.0)
vectorize(matmul.acc, n.1)
)";

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
    const std::string steps = fmt::format(R"(
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
)", tail == "pad" ? "mask" : tail);
    for (const int64_t stride : {1, 2}) expect_same(conv(7, 13, 3, 17, stride, true), steps);
    expect_same(conv(5, 5, 2, 8, 1, false), steps);
  }
}

TEST(proof, a_padded_tail_that_reads_beyond_its_input_is_refused) {
  const Result<Steps> steps = parse_steps(R"(
split(relu, ow, [5], pad)
compute_at(conv2d, relu, ow.0)
)");
  ASSERT_TRUE(steps.ok());
  const Result<ir::Program> program = lower(conv(7, 13, 3, 17, 1, true), *steps);
  ASSERT_FALSE(program.ok());
  EXPECT_NE(program.status().message().find("padded tail"), std::string::npos) << program.status().message();
}

}  // namespace
}  // namespace hone::schedule
