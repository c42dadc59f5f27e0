#include "hone/analysis/gpu_measure.h"

#include <cmath>

#include "hone/compute/dag_testing.h"
#include "hone/schedule/schedule_testing.h"
#include "hone/space/space.h"

namespace hone::analysis {
namespace {

using namespace compute::testing;

target::Gpu gpu() {
  target::Gpu gpu;
  gpu.sms = 4;
  gpu.fma_per_cycle = 128;
  gpu.warps_per_sm = 64;
  gpu.blocks_per_sm = 32;
  gpu.shared_bytes_opt_in = gpu.shared_bytes_per_sm = 96 << 10;
  gpu.l2_bytes = 4 << 20;
  gpu.memory_bandwidth = 500e9;
  return gpu;
}

// A product in blocks of 64 x 64 results; each of 16 x 16 threads has 4 x 4 of them, or, with
// `wide`, each of 8 x 8 threads 8 x 8.
std::string product(bool wide) {
  const int own = wide ? 8 : 4, threads = 64 / own;
  return schedule::product_in_threads(
      {.m_threads = threads, .m = own, .n_threads = threads, .n = own, .k = 8});
}

GpuMeasure measure(const compute::Dag& dag, std::string_view text, const target::Gpu& device) {
  const Result<schedule::Steps> steps = schedule::parse_steps(text);
  EXPECT_TRUE(steps.ok()) << steps.status().message();
  const Result<space::Candidate> candidate = space::make_candidate(dag, *steps);
  EXPECT_TRUE(candidate.ok()) << candidate.status().message();
  return measure_gpu(candidate->state, candidate->bounds, device);
}

const GpuStageMeasure& heaviest(const GpuRootMeasure& root) {
  return *std::max_element(root.stages.begin(), root.stages.end(),
                           [](const GpuStageMeasure& a, const GpuStageMeasure& b) {
                             return a.arithmetic < b.arithmetic;
                           });
}

TEST(gpu_measure, counts_blocks_threads_and_storage_of_a_product) {
  const GpuMeasure made = measure(gemm(256, 128, 64), product(false), gpu());
  ASSERT_EQ(made.roots.size(), 1U);
  const GpuRootMeasure& root = made.roots[0];
  EXPECT_EQ(root.blocks, 8);
  EXPECT_EQ(root.threads, 256);
  EXPECT_EQ(root.shared_bytes, 2 * 64 * 8 * 4);
  const GpuStageMeasure& sum = heaviest(root);
  EXPECT_EQ(sum.threads, 256);
  EXPECT_EQ(sum.passes, 64);  // one for each term
  EXPECT_NEAR(sum.arithmetic, 64 * (16 + 2), 64 * 16 * 0.5);
  EXPECT_EQ(sum.global_requests, 0);
  EXPECT_EQ(sum.shared_requests, 64 * (4 + 4));
  EXPECT_GE(root.registers, 16);
  // L2 gives each block its rows of one operand and its columns of the other.
  EXPECT_NEAR(root.l2_bytes, 8.0 * (2 * 64 * 64 + 64 * 64) * 4, 0.7 * root.l2_bytes);
}

TEST(gpu_measure, larger_tiles_of_registers_load_less_of_shared_memory) {
  const compute::Dag dag = gemm(1024, 1024, 64);
  const GpuMeasure narrow = measure(dag, product(false), gpu());
  const GpuMeasure wide = measure(dag, product(true), gpu());
  const GpuStageMeasure &few = heaviest(wide.roots[0]), &many = heaviest(narrow.roots[0]);
  EXPECT_EQ(2 * few.shared_requests * few.threads, many.shared_requests * many.threads);
}

TEST(gpu_measure, rows_of_a_power_of_two_collide_in_the_banks_of_shared_memory) {
  const auto cycles_per_request = [](std::string_view text) {
    const GpuMeasure made = measure(gemm(256, 256, 64), text, gpu());
    const GpuStageMeasure& sum = heaviest(made.roots[0]);
    return sum.shared_cycles / sum.shared_requests;
  };
  const std::string plain = product(true);
  const size_t scope = plain.find("scope(data.cache, shared)");
  std::string turned = plain;  // neighbouring rows are neighbours in memory
  turned.insert(scope, "layout(data.cache, [k, m])\n");
  EXPECT_LT(cycles_per_request(turned), cycles_per_request(plain));
}

TEST(gpu_measure, a_block_that_does_not_fit_takes_for_ever) {
  const compute::Dag dag = gemm(256, 256, 64);
  target::Gpu small = gpu();
  EXPECT_TRUE(std::isfinite(measure(dag, product(false), small).seconds(small)));
  small.shared_bytes_opt_in = 2048;
  EXPECT_TRUE(std::isinf(measure(dag, product(false), small).seconds(small)));
  small = gpu();
  small.threads_per_block = 128;
  EXPECT_TRUE(std::isinf(measure(dag, product(false), small).seconds(small)));
}

TEST(gpu_measure, lanes_beside_each_other_share_sectors) {
  const compute::Dag dag = gemm(512, 512, 8);
  const auto with = [&](std::string_view thread) {
    return measure(dag,
                   fmt::format("parallel(matmul, m)\nsplit(matmul, n, [32])\n"
                               "reorder(matmul, [m, {0}, {1}])\nbind(matmul, {1}, thread)\n",
                               thread == "n.1" ? "n.0" : "n.1", thread),
                   gpu());
  };
  const GpuMeasure beside = with("n.1");  // one element apart
  const GpuMeasure apart = with("n.0");   // 32 elements apart
  EXPECT_LT(beside.roots[0].stages[0].global_sectors, apart.roots[0].stages[0].global_sectors);
}

TEST(gpu_measure, more_multiprocessors_take_less_time) {
  const compute::Dag dag = gemm(2048, 2048, 512);
  target::Gpu many = gpu();
  many.sms = 64;
  EXPECT_LT(2 * measure(dag, product(true), many).seconds(many),
            measure(dag, product(true), gpu()).seconds(gpu()));
}

}  // namespace
}  // namespace hone::analysis
