#include "hone/backend/cpu/count_code.h"

#include <gtest/gtest.h>

#include "hone/backend/cpu/arm_numbers.h"
#include "hone/backend/cpu/count_code_testing.h"
#include "hone/backend/cpu/sample_programs_testing.h"
#include "hone/backend/cpu/test_support.h"
#include "hone/ir/pass_testing.h"
#include "hone/target/target.h"

namespace hone::backend::cpu {
namespace {

CountedCode counted(const ir::Program& program, const std::string& device,
                    std::optional<TileRange> tiles = {}) {
  const target::Target target = *target::find(device);
  const auto code = compile(program, target.cpu());
  EXPECT_TRUE(code.ok()) << code.status().message();
  if (!code.ok()) return {};
  const auto all = count_code(code->object, code->phases, program, target.cpu(), tiles);
  EXPECT_TRUE(all.ok()) << all.status().message();
  return all.ok() && all->size() == 1 ? all->front() : CountedCode{};
}

ir::Program gemm() {
  return gemm_program({.m = 12, .n = 32, .k = 64, .tile_m = 6, .tile_n = 16, .lanes = 8});
}

// The count is that of the instructions which a processor executes, to the instruction.
void expect_exact(const ir::Program& program) {
  for (const target::Target& target : runnable_targets()) {
    const CountCheck check = check_counts(program, target, 20'000);
    if (check.skipped) GTEST_SKIP() << "nothing can be stepped through here";
    EXPECT_EQ(check.wrong, "");
    EXPECT_EQ(check.exact, check.phases) << target.name;
    EXPECT_GT(check.phases, 0) << target.name;
  }
}

TEST(count_code, of_a_product_is_what_is_executed) { expect_exact(gemm()); }

TEST(count_code, of_a_convolution_is_what_is_executed) {
  expect_exact(conv_program({.height = 2,
                             .width = 4,
                             .in_channels = 8,
                             .out_channels = 16,
                             .tile_w = 2,
                             .tile_oc = 16,
                             .lanes = 8}));
}

// Bounds that depend on an outer loop, a guard, a division and a tail of vectors.
TEST(count_code, of_loops_that_depend_on_one_another_is_what_is_executed) {
  expect_exact(ir::testing::parsed(R"(program triangle {
  input data: f32[9, 40]
  output out: f32[9, 40]
  phase {
    parallel t in 0..9 {
      for i in 0..+min(t + 1, 7) {
        if (t + i) % 3 < 2 {
          vectorized l in 0..37 {
            out[t, l] = data[i, l] + 1.0
          }
        }
      }
    }
  }
}
)"));
}

TEST(count_code, multiplies_by_trip_counts_and_names_the_loops) {
  const CountedCode code = counted(gemm(), "x86-64-avx2");
  EXPECT_TRUE(code.exact()) << code.failure;
  EXPECT_EQ(code.tiles, 4);
  EXPECT_EQ(code.executed.fma, 4 * 64 * 6 * 2);  // tiles, steps, vectors of a tile
  EXPECT_EQ(code.executed.store, 4 * 6 * 2 + code.executed.store % (4 * 6 * 2));
  ASSERT_EQ(code.loops.size(), 2U);
  EXPECT_EQ(code.loops[0].name, "tile in 0..4");
  EXPECT_EQ(code.loops[0].iterations, 4);
  EXPECT_EQ(code.loops[1].name, "k in 0..64");
  EXPECT_EQ(code.loops[1].depth, 1);
  EXPECT_EQ(code.loops[1].entries, 4);
  EXPECT_EQ(code.loops[1].iterations, 4 * 64);
}

TEST(count_code, of_a_part_of_the_tiles) {
  const CountedCode code = counted(gemm(), "x86-64-avx2", TileRange{1, 3});
  EXPECT_EQ(code.executed.fma, 2 * 64 * 6 * 2);
  EXPECT_EQ(counted(gemm(), "x86-64-avx2", TileRange{2, 2}).executed.fma, 0);
}

// tests/arm_counts_test.py compares more of them with what an emulator executes.
TEST(count_code, of_another_architecture_is_told_by_the_code_as_well) {
  const CountedCode code = counted(gemm(), "aarch64-neon");
  EXPECT_TRUE(code.exact());
  ASSERT_EQ(code.loops.size(), 2U);
  EXPECT_EQ(code.loops[1].source, CountedLoop::Source::kCode);
  EXPECT_EQ(code.loops[1].iterations, 4 * 64);
  EXPECT_EQ(code.executed.fma, 4 * 64 * 6 * 4);
}

TEST(count_code, of_data_that_decides_says_so) {
  const ir::Program program = ir::testing::parsed(R"(program chosen {
  input data: f32[64]
  output out: f32[64]
  phase {
    for i in 0..64 {
      if 0.0 < data[i] {
        out[i] = exp(data[i])
      }
    }
  }
}
)");
  const CountedCode code = counted(program, "x86-64-avx2");
  EXPECT_FALSE(code.exact());
  EXPECT_EQ(code.unknown_branches, 1);
  ASSERT_EQ(code.loops.size(), 1U);
  EXPECT_EQ(code.loops[0].iterations, 64);
}

// Equal blocks are simulated once; where they are equal is no part of that, nor how often they run.
TEST(count_code, blocks_are_simulated_once_and_only_if_asked) {
  const target::Target target = *target::find("x86-64-avx2");
  const auto count = [&](const ir::Program& program, bool simulates) {
    const auto code = compile(program, target.cpu());
    EXPECT_TRUE(code.ok()) << code.status().message();
    return count_code(code->object, code->phases, program, target.cpu(), {}, simulates)
        .value()
        .at(0);
  };
  const CountedCode first = count(gemm(), true), again = count(gemm(), true);
  EXPECT_GT(first.mca_cycles, 0);
  EXPECT_EQ(again.mca_cycles, first.mca_cycles);
  const CountedCode without = count(gemm(), false);
  EXPECT_EQ(without.mca_cycles, 0);
  EXPECT_EQ(without.cycles, first.cycles);
  EXPECT_EQ(without.executed.all, first.executed.all);
  // Rows that are longer move the addresses of the same loop.
  const ir::Program wider =
      gemm_program({.m = 12, .n = 64, .k = 64, .tile_m = 6, .tile_n = 16, .lanes = 8});
  ASSERT_EQ(first.loops.size(), 2U);
  EXPECT_EQ(count(wider, true).loops.at(1).mca_cycles, first.loops[1].mca_cycles);
}

// The numbers are those of llvm-mc -show-inst.
TEST(count_code, numbers_in_logical_instructions_of_arm) {
  EXPECT_EQ(logical_number(8060, 64), 0xfffffffffffffff8U);
  EXPECT_EQ(logical_number(2, 32), 7U);
  EXPECT_EQ(logical_number(4098, 64), 7U);
  EXPECT_EQ(logical_number(4096, 64), 1U);
  EXPECT_EQ(logical_number(0b0'000000'111100, 64), 0x5555555555555555U);  // elements of two bits
  EXPECT_EQ(logical_number(0b0'000001'111100, 32), 0xaaaaaaaaU);
}

}  // namespace
}  // namespace hone::backend::cpu
