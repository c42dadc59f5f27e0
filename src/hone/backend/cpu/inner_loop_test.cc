#include <gtest/gtest.h>

#include "hone/backend/cpu/inner_loop_testing.h"
#include "hone/backend/cpu/sample_programs_testing.h"
#include "hone/ir/pass_testing.h"
#include "hone/target/target.h"

namespace hone::backend::cpu {
namespace {

std::string text(const InnerLoop& loop) {
  std::string lines = "\n";
  for (const std::string& line : loop.text) lines += line + "\n";
  return lines;
}

// 6 x 2 vectors of accumulators: each step of k reads 2 vectors and broadcasts 6 elements.
GemmShape gemm(int64_t lanes) {
  return {.m = 12, .n = 4 * lanes, .k = 64, .tile_m = 6, .tile_n = 2 * lanes, .lanes = lanes};
}

TEST(inner_loop, of_a_register_tile_with_512_bits) {
  const InnerLoop loop = inner_loop_of(gemm_program(gemm(16)), "x86-64-avx512");
  EXPECT_EQ(loop.symbol, "hone_kernel_0");
  EXPECT_TRUE(loop.is_loop);
  EXPECT_EQ(loop.mix.fma, 12) << text(loop);
  EXPECT_EQ(loop.mix.load, 2 + 6) << text(loop);
  EXPECT_EQ(loop.mix.broadcast, 6) << text(loop);
  EXPECT_EQ(loop.mix.store, 0) << text(loop);
  EXPECT_EQ(loop.mix.shuffle, 0) << text(loop);
  EXPECT_EQ(loop.mix.arithmetic, 0) << text(loop);
  EXPECT_GE(loop.vector_registers, 12 + 2);
  EXPECT_LE(loop.vector_registers, 12 + 2 + 6);
  EXPECT_EQ(loop.vector_bits, 512);
  EXPECT_EQ(loop.spills, 0);
  EXPECT_DOUBLE_EQ(loop.port_cycles, 6);  // 12 multiply-adds, 2 a cycle
  EXPECT_GT(loop.bytes, 12 * 6);
  // Never faster than its ports, nor slower than one instruction a cycle and a half.
  EXPECT_GE(loop.mca_cycles, 6) << text(loop);
  EXPECT_LE(loop.mca_cycles, 40) << text(loop);
}

TEST(inner_loop, of_a_register_tile_with_256_bits) {
  const InnerLoop loop = inner_loop_of(gemm_program(gemm(8)), "x86-64-avx2");
  EXPECT_EQ(loop.mix.fma, 12) << text(loop);
  EXPECT_EQ(loop.mix.broadcast, 6) << text(loop);
  EXPECT_EQ(loop.mix.load, 2 + 6) << text(loop);
  EXPECT_EQ(loop.vector_bits, 256);
  EXPECT_LE(loop.vector_registers, 16);
  EXPECT_EQ(loop.spills, 0) << text(loop);
  EXPECT_GT(loop.mca_cycles, 0);
}

TEST(inner_loop, spills_are_seen) {
  // 8 x 4 accumulators and operands do not fit 16 registers.
  const InnerLoop loop =
      inner_loop_of(gemm_program({.m = 8, .n = 32, .k = 64, .tile_m = 8, .tile_n = 32, .lanes = 8}),
                    "x86-64-avx2");
  EXPECT_EQ(loop.mix.fma, 32) << text(loop);
  EXPECT_GT(loop.spills, 8) << text(loop);
  EXPECT_EQ(loop.vector_registers, 16);
}

TEST(inner_loop, an_outer_loop_does_not_count) {
  // Three loops around the multiply-adds: only the innermost is described.
  const InnerLoop loop = inner_loop_of(conv_program({.height = 4,
                                                     .width = 6,
                                                     .in_channels = 32,
                                                     .out_channels = 32,
                                                     .tile_w = 6,
                                                     .tile_oc = 32,
                                                     .lanes = 16}),
                                       "x86-64-avx512");
  EXPECT_EQ(loop.mix.fma, 12) << text(loop);
  EXPECT_EQ(loop.mix.load, 2 + 6) << text(loop);
}

TEST(inner_loop, moves_of_accumulators_are_no_work) {
  // Around the maxima eight registers are set and eight stored, as many vector instructions.
  const ir::Program program = ir::testing::parsed(R"(program maxima {
  input data: f32[64, 1024]
  output out: f32[1024]
  phase {
    parallel t in 0..8 {
      alloc register acc: f32[128] {
        unrolled i in 0..8 {
          vectorized l in 0..16 {
            acc[i * 16 + l] = -inf
          }
        }
        for r in 0..64 {
          unrolled i_1 in 0..8 {
            vectorized l_1 in 0..16 {
              acc[i_1 * 16 + l_1] = max(acc[i_1 * 16 + l_1], data[r, t * 128 + i_1 * 16 + l_1])
            }
          }
        }
        unrolled i_2 in 0..8 {
          vectorized l_2 in 0..16 {
            out[t * 128 + i_2 * 16 + l_2] = acc[i_2 * 16 + l_2]
          }
        }
      }
    }
  }
}
)");
  const InnerLoop loop = inner_loop_of(program, "x86-64-avx512");
  EXPECT_EQ(loop.mix.arithmetic, 8) << text(loop);
  EXPECT_EQ(loop.mix.load, 8) << text(loop);
  EXPECT_EQ(loop.mix.store, 0) << text(loop);
}

TEST(inner_loop, of_another_architecture) {
  const InnerLoop loop = inner_loop_of(gemm_program(gemm(4)), "aarch64-neon");
  EXPECT_EQ(loop.mix.fma, 12) << text(loop);
  EXPECT_GT(loop.mix.load, 0) << text(loop);
  EXPECT_EQ(loop.vector_bits, 128);
  EXPECT_EQ(loop.spills, 0) << text(loop);
}

TEST(inner_loop, phases_that_only_prepare_have_none) {
  ir::Program program = gemm_program(gemm(16));
  program.phases[0].prepare = true;
  const target::Target target = *target::find("x86-64-avx512");
  const auto code = compile(program, target.cpu());
  ASSERT_TRUE(code.ok());
  const auto loops = inner_loops(code->object, code->phases, target.cpu());
  ASSERT_TRUE(loops.ok()) << loops.status().message();
  EXPECT_TRUE(loops->empty());
}

TEST(inner_loop, of_no_object_file) {
  const target::Target target = *target::find("x86-64-avx512");
  EXPECT_FALSE(inner_loops("no object", {}, target.cpu()).ok());
}

}  // namespace
}  // namespace hone::backend::cpu
