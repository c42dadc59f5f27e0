#include "hone/backend/gpu/code_batch_testing.h"
#include "hone/backend/gpu/space_points_testing.h"
#include "hone/compute/window_testing.h"

// Points of the spaces of GPUs, on extents that leave tails of every kind, as OpenCL C on PoCL's
// device and as code of CUDA.

namespace hone::backend::gpu {
namespace {

using namespace compute::testing;

using testing::for_points;
using testing::tasks_of_every_rule;

class SpaceOnOpenCl : public testing::OpenClTest {
 protected:
  void expect_points(int64_t n, int samples) {
    for (const compute::Dag& dag : tasks_of_every_rule(n))
      for_points(dag, samples, static_cast<uint64_t>(n),
                 [&](const ir::Program& program) { add(program, 1, 1e-4); });
    EXPECT_GT(size(), 17);
    expect_right();
  }
};
// Kernels of all rules are optimised for the extent 33. Those of 1, 7 and 13 are compiled plainly,
// in half of the time: what Hone prints is compared at each extent, what PoCL makes of it at one.
TEST_F(SpaceOnOpenCl, odd_extents_1) {
  compile_unoptimised();
  expect_points(1, 0);
}
TEST_F(SpaceOnOpenCl, odd_extents_7) {
  compile_unoptimised();
  expect_points(7, 1);
}
TEST_F(SpaceOnOpenCl, odd_extents_13) {
  compile_unoptimised();
  expect_points(13, 1);
}
TEST_F(SpaceOnOpenCl, odd_extents_33) { expect_points(33, 1); }

using SpaceOnCuda = testing::CudaTest;
TEST_F(SpaceOnCuda, points_of_every_rule_are_compiled) {
  for (const compute::Dag& dag : tasks_of_every_rule(31))
    for_points(dag, 1, 31, [&](const ir::Program& program) { add(program); });
  expect_compiled();
}

// Tiles are in registers: nothing of the default schedule of a large product is in local memory.
TEST_F(SpaceOnCuda, a_product_keeps_its_tiles_in_registers) {
  for_points(gemm(512, 512, 512), 0, 1, [&](const ir::Program& program) { add(program); });
  for (const KernelNote& kernel : expect_compiled({"sm_80"}).kernels) {
    EXPECT_EQ(kernel.spill_bytes, 0) << kernel.symbol;
    EXPECT_EQ(kernel.stack_bytes, 0) << kernel.symbol;
    EXPECT_GT(kernel.registers, 16) << kernel.symbol;
  }
}

TEST_F(SpaceOnCuda, attentions_keep_their_tiles_in_registers) {
  const auto add_program = [&](const ir::Program& program) { add(program); };
  for_points(attention(12, 128, 128, 64), 0, 1, add_program);
  for_points(attention(4, 197, 197, 80), 0, 1, add_program);
  for (const KernelNote& kernel : expect_compiled({"sm_80"}).kernels) {
    // The rare cases of the division of results are a function that is called.
    EXPECT_LE(kernel.spill_bytes, 4) << kernel.symbol;
    EXPECT_LE(kernel.stack_bytes, 8) << kernel.symbol;
    EXPECT_GT(kernel.registers, 16) << kernel.symbol;
  }
}

class TilesOnCuda : public testing::CudaTest {
 protected:
  // Expects nothing of the default schedules of products and convolutions, large and small, for a
  // GPU to be in local memory: tiles are in registers. They copy asynchronously, and the loop is
  // hardly more than products.
  void expect_tiles(const char* arch) {
    ConvShape shape;
    shape.h = shape.w = 14, shape.ic = shape.oc = 256;
    // Few results of long sums, which groups of a block's threads share.
    ConvShape few = shape;
    few.h = few.w = 7, few.ic = 960, few.oc = 160, few.kernel = 1, few.pad = 0;
    const target::Target target = *target::find(fmt::format("cuda-{}", arch));
    for (const compute::Dag& dag :
         {gemm(2048, 2048, 2048), gemm(128, 768, 768), conv2d(shape), conv2d(few)})
      for_points(
          dag, 0, 1, [&](const ir::Program& program) { add(program); }, target);
    const Cubin cubin = expect_compiled({arch});
    EXPECT_GT(cubin.kernels.size(), 5);
    double share = 0;
    int64_t copies = 0;
    for (const KernelNote& kernel : cubin.kernels) {
      EXPECT_EQ(kernel.spill_bytes, 0) << kernel.symbol;
      EXPECT_EQ(kernel.stack_bytes, 0) << kernel.symbol;
      const Result<CubinInstructions> found = count_instructions(cubin.data, kernel.symbol);
      ASSERT_TRUE(found.ok()) << found.status().message();
      share = std::max(share, static_cast<double>(found->fma) / static_cast<double>(found->all));
      copies += found->async_copy;
    }
    EXPECT_GT(share, 0.7);
    EXPECT_GT(copies, 0);
  }
};
TEST_F(TilesOnCuda, stay_in_registers_of_sm_80_while_copies_work_ahead) { expect_tiles("sm_80"); }
TEST_F(TilesOnCuda, stay_in_registers_of_sm_90a_while_copies_work_ahead) { expect_tiles("sm_90a"); }

// A thread has its tile of results in registers, and loads what their windows have in common once:
// there would be two loads for each multiply-add otherwise.
TEST_F(SpaceOnCuda, windows_are_loaded_once_into_registers) {
  const target::Target h100 = *target::find("cuda-sm_90a");
  std::vector<WindowShape> shapes = {
      {.results = {112, 112}, .channels = 32, .channels_last = true},
      {.results = {56, 56}, .batch = 8, .channels = 96, .stride = 2, .channels_last = true},
      {.results = {28, 28}, .channels = 240, .kernel = 5, .channels_last = true},
      {.results = {56, 56}, .batch = 8, .channels = 144},
      {.results = {14, 14}, .channels = 480, .kernel = 5},
      {.results = {7, 7}, .channels = 960}};
  for (const WindowShape& shape : shapes)
    for_points(
        windows(shape), 0, 1, [&](const ir::Program& program) { add(program); }, h100);
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const Cubin cubin = expect_compiled({arch});
    EXPECT_GE(cubin.kernels.size(), 3 * shapes.size());
    int tiles = 0;
    for (const KernelNote& kernel : cubin.kernels) {
      EXPECT_EQ(kernel.spill_bytes, 0) << kernel.symbol;
      EXPECT_EQ(kernel.stack_bytes, 0) << kernel.symbol;
      const Result<CubinInstructions> found = count_instructions(cubin.data, kernel.symbol);
      ASSERT_TRUE(found.ok()) << found.status().message();
      EXPECT_EQ(found->local, 0) << kernel.symbol;
      const bool is_tile = kernel.shared_bytes == 0 && found->fma > 60;
      if (!is_tile) continue;
      ++tiles;
      EXPECT_LT(found->global_load, found->fma) << kernel.symbol;
    }
    EXPECT_GE(tiles, 4);
  }
}

// A thread loads its vectors of a row once, however often the row is reduced, and tiles of a
// transpose move as vectors.
TEST_F(SpaceOnCuda, rows_and_transposes_are_loaded_once_in_vectors) {
  const target::Target h100 = *target::find("cuda-sm_90a");
  for (const compute::Dag& dag :
       {softmax(16384, 1024, 1), normalized_rows(16384, 1024), transpose(4096, 64, 64, 0)}) {
    const Result<space::Space> space = space::Space::create(dag, h100);
    ASSERT_TRUE(space.ok()) << space.status().message();
    testing::for_points(*space, {space->default_point()}, 0, 1,
                        [&](const ir::Program& program) { add(program); });
  }
  const Cubin cubin = expect_compiled({"sm_90a"});
  ASSERT_EQ(cubin.kernels.size(), 3);
  for (const KernelNote& kernel : cubin.kernels) {
    EXPECT_EQ(kernel.spill_bytes, 0) << kernel.symbol;
    EXPECT_EQ(kernel.stack_bytes, 0) << kernel.symbol;
    const Result<CubinInstructions> found = count_instructions(cubin.data, kernel.symbol);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found->global_load, 4) << kernel.symbol;
    EXPECT_EQ(found->global_store, 4) << kernel.symbol;
  }
}

// A warp has a row, so that nothing waits at barriers or lies in shared memory.
TEST_F(SpaceOnCuda, rows_of_warps_need_no_shared_memory) {
  for (const compute::Dag& dag : {softmax(16384, 512, 1), normalized_rows(16384, 256)})
    for_points(
        dag, 0, 1, [&](const ir::Program& program) { add(program); }, *target::find("cuda-sm_90a"));
  const Cubin cubin = expect_compiled({"sm_90a"});
  ASSERT_GE(cubin.kernels.size(), 2);
  int rows = 0;
  for (const KernelNote& kernel : cubin.kernels) {
    const Result<CubinInstructions> found = count_instructions(cubin.data, kernel.symbol);
    ASSERT_TRUE(found.ok()) << found.status().message();
    if (found->global_load > 4) continue;  // threads with points of their own
    ++rows;
    EXPECT_EQ(kernel.spill_bytes + kernel.stack_bytes, 0) << kernel.symbol;
    EXPECT_EQ(kernel.shared_bytes, 0) << kernel.symbol;
    EXPECT_EQ(found->barrier + found->shared_load + found->shared_store, 0) << kernel.symbol;
  }
  EXPECT_GE(rows, 2);
}

}  // namespace
}  // namespace hone::backend::gpu
