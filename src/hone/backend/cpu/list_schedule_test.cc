#include "hone/backend/cpu/list_schedule.h"

#include <gtest/gtest.h>

#include "hone/backend/cpu/compiler.h"
#include "hone/backend/cpu/count_code.h"
#include "hone/backend/cpu/sample_programs_testing.h"
#include "hone/target/target.h"

namespace hone::backend::cpu {
namespace {

// Two ports of multiply-adds of 4 cycles, one of them shared with other vector operations; two
// loads and one store a cycle; 32 instructions in flight, 4 of which enter in a cycle.
constexpr CoreModel kCore = {"test",
                             4,
                             32,
                             256,
                             {{{0, 0},
                               {0b11, 4},
                               {0b10, 2},
                               {0b10, 1},
                               {0b110000, 1},
                               {0b10000, 3},
                               {0b100000, 1},
                               {0b110000000000, 7},
                               {0b1000000000000, 1}}},
                             0b10000000000,
                             0b1000000000000};

CoreStep fma(size_t sum, bool loads = false, bool wide = false) {
  return {.unit = Unit::kFma,
          .loads = loads,
          .wide = wide,
          .addresses = {},
          .reads = {sum, 100},
          .writes = {sum},
          .advances = {}};
}

std::vector<CoreStep> sums(size_t number, bool loads = false, bool wide = false) {
  std::vector<CoreStep> steps;
  for (size_t i = 0; i < number; ++i) steps.push_back(fma(i, loads, wide));
  return steps;
}

double cycles(const std::vector<CoreStep>& steps) { return list_schedule(steps, kCore); }

TEST(list_schedule, a_chain_takes_its_latency) {
  EXPECT_DOUBLE_EQ(cycles({fma(0)}), 4);
  EXPECT_DOUBLE_EQ(cycles({fma(0), fma(0), fma(0)}), 12);
}

TEST(list_schedule, independent_ones_take_their_ports) {
  EXPECT_DOUBLE_EQ(cycles(sums(8)), 4);
  EXPECT_DOUBLE_EQ(cycles(sums(16)), 8);
  EXPECT_DOUBLE_EQ(cycles(sums(16, false, true)), 16);  // wider than the ports
}

TEST(list_schedule, a_load_does_not_wait_for_the_sum_that_it_is_added_to) {
  EXPECT_DOUBLE_EQ(cycles({fma(0, true)}), 4);
}

TEST(list_schedule, loads_and_stores_take_their_ports) {
  const CoreStep load{.loads = true, .addresses = {7}, .reads = {}, .writes = {8}, .advances = {}};
  const CoreStep store{
      .stores = true, .addresses = {7}, .reads = {8}, .writes = {}, .advances = {}};
  EXPECT_DOUBLE_EQ(cycles({load, load, load, load}), 2);
  EXPECT_DOUBLE_EQ(cycles({store, store, store}), 3);
  EXPECT_DOUBLE_EQ(cycles({load, store}), 1);
  CoreStep wide = load;
  wide.wide = true;
  EXPECT_DOUBLE_EQ(cycles({wide, wide, wide, wide}), 4);
}

TEST(list_schedule, a_pointer_that_moves_on_does_not_wait_for_the_data) {
  CoreStep load{.loads = true, .addresses = {7}, .reads = {}, .writes = {8}, .advances = {7}};
  EXPECT_DOUBLE_EQ(cycles({load}), 1);
  load.writes = {7}, load.advances = {};  // follows a list
  EXPECT_DOUBLE_EQ(cycles({load}), 7);
}

TEST(list_schedule, no_more_instructions_enter_than_are_issued) {
  EXPECT_DOUBLE_EQ(cycles(std::vector<CoreStep>(12)), 3);
}

TEST(list_schedule, other_units_leave_the_ports_to_those_that_have_no_other) {
  std::vector<CoreStep> steps = sums(4);
  for (size_t i = 0; i < 4; ++i)
    steps.push_back(
        {.unit = Unit::kVector, .addresses = {}, .reads = {}, .writes = {20 + i}, .advances = {}});
  EXPECT_DOUBLE_EQ(cycles(steps), 4);  // the chains' latency hides all
}

TEST(list_schedule, waits_for_room_in_the_window) {
  // Behind a chain of 12 cycles the window of 32 has too few of the next iteration's instructions.
  std::vector<CoreStep> steps = {fma(0), fma(0), fma(0)};
  CoreModel narrow = kCore;
  narrow.window = 4;
  std::vector<CoreStep> loads(
      12, CoreStep{.loads = true, .addresses = {7}, .reads = {}, .writes = {8}, .advances = {}});
  steps.insert(steps.end(), loads.begin(), loads.end());
  EXPECT_DOUBLE_EQ(list_schedule(steps, kCore), 12);
  EXPECT_GT(list_schedule(steps, narrow), 24);
}

// The inner loop of a product with a tile of accumulators, on a processor.
CountedLoop inner_loop(int64_t tile_m, int64_t vectors, const std::string& model) {
  target::Cpu cpu = target::find("x86-64-avx512")->cpu();
  const ir::Program program = gemm_program({.m = tile_m,
                                            .n = 16 * vectors,
                                            .k = 64,
                                            .tile_m = tile_m,
                                            .tile_n = 16 * vectors,
                                            .lanes = 16});
  const auto code = compile(program, cpu);
  EXPECT_TRUE(code.ok()) << code.status().message();
  cpu.model = model;
  const auto counts = count_code(code->object, code->phases, program, cpu);
  EXPECT_TRUE(counts.ok()) << counts.status().message();
  if (!counts.ok() || counts->empty() || counts->front().loops.empty()) return {};
  return counts->front().loops.back();
}

TEST(list_schedule, many_accumulators_are_bound_by_multiply_adds) {
  // 12 multiply-adds of 512 bits a step: two a cycle on Zen 5, one on Zen 4.
  const CountedLoop zen5 = inner_loop(6, 2, "znver5"), zen4 = inner_loop(6, 2, "znver4");
  EXPECT_NEAR(zen4.cycles / zen5.cycles, 2, 0.2) << zen4.cycles << " and " << zen5.cycles;
  EXPECT_GE(zen5.cycles, 6);
  EXPECT_GT(zen5.mca_cycles, 0);
}

TEST(list_schedule, one_accumulator_waits_for_itself) {
  // Each copy of the body of an unrolled loop takes the latency of a multiply-add.
  const CountedLoop loop = inner_loop(1, 1, "znver5");
  EXPECT_NEAR(loop.cycles * static_cast<double>(loop.iterations), 4 * 64, 8);
}

TEST(list_schedule, of_no_code_is_nothing) { EXPECT_EQ(cycles({}), 0); }

TEST(list_schedule, every_processor_has_a_model_of_its_kind) {
  EXPECT_EQ(core_model(target::find("x86-64-avx512")->cpu()).name, "sapphirerapids");
  EXPECT_EQ(core_model(target::find("x86-64-avx2")->cpu()).name, "x86-64-v3");
  EXPECT_EQ(core_model(target::find("aarch64-neon")->cpu()).name, "neoverse-n1");
}

}  // namespace
}  // namespace hone::backend::cpu
