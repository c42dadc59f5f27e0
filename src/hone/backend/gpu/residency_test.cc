#include "hone/backend/gpu/residency.h"

#include <gtest/gtest.h>

namespace hone::backend::gpu {
namespace {

target::Gpu gpu() {
  target::Gpu gpu;
  gpu.sms = 10;
  gpu.warps_per_sm = 64;
  gpu.blocks_per_sm = 32;
  gpu.shared_bytes_per_sm = 100 << 10;
  gpu.shared_bytes_reserved = 1 << 10;
  return gpu;
}

Kernel kernel(int threads, int64_t shared = 0, int64_t tiles = 1000) {
  return {.symbol = "k", .tiles = tiles, .threads = threads, .shared_bytes = shared};
}

TEST(residency, blocks_share_registers_warps_and_shared_memory) {
  EXPECT_EQ(resident_blocks(kernel(256), 32, gpu()), 8);  // 65536 / 32 / 256
  EXPECT_EQ(resident_blocks(kernel(256), 33, gpu()), 6);  // 40 registers each
  EXPECT_EQ(resident_blocks(kernel(256), 16, gpu()), 8);  // 64 warps
  EXPECT_EQ(resident_blocks(kernel(33), 128, gpu()), 8);  // two warps have 64 x 128 registers
  EXPECT_EQ(resident_blocks(kernel(32), 8, gpu()), 32);   // so many blocks at most
  EXPECT_EQ(resident_blocks(kernel(256, 49 << 10), 32, gpu()), 2);
  EXPECT_EQ(resident_blocks(kernel(1024), 72, gpu()), 0);
  target::Gpu any = gpu();
  any.registers_per_sm = 0;
  EXPECT_EQ(resident_blocks(kernel(256), 255, any), 8);
}

TEST(residency, a_few_registers_less_are_asked_for_if_they_bring_a_block_more) {
  const auto asked = [](const Kernel& kernel, int registers) {
    return blocks_to_ask_for(kernel, {.symbol = "k", .registers = registers}, gpu());
  };
  EXPECT_EQ(asked(kernel(256), 90), 3);   // 80 let an SM hold three blocks, 90 two
  EXPECT_EQ(asked(kernel(256), 80), 0);   // three are there, and 64 were a fifth less
  EXPECT_EQ(asked(kernel(256), 104), 0);  // 80 were a quarter less
  EXPECT_EQ(asked(kernel(256), 136), 2);
  EXPECT_EQ(asked(kernel(64), 40), 0);             // there are many blocks as it is
  EXPECT_EQ(asked(kernel(256, 45 << 10), 90), 0);  // shared memory has room for two
  EXPECT_EQ(asked(kernel(256, 0, 20), 90), 0);     // 20 blocks are all at once on 10 SMs
  EXPECT_EQ(asked(kernel(256, 0, 21), 90), 3);
}

}  // namespace
}  // namespace hone::backend::gpu
