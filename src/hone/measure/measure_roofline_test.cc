#include "hone/measure/measure_roofline.h"

#include <gtest/gtest.h>

#include "hone/backend/cpu/compiler.h"
#include "hone/ir/verifier.h"
#include "hone/measure/roofline_programs.h"
#include "hone/target/target.h"

namespace hone::measure {
namespace {

int count(const std::string& text, std::string_view what) {
  int found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

std::string assembly(const ir::Program& program, const target::Cpu& target) {
  const auto code = backend::cpu::compile(program, target, {.keep_assembly = true});
  EXPECT_TRUE(code.ok()) << code.status().message();
  return code.ok() ? code->assembly : "";
}

TEST(measure_roofline, the_kernels_are_nothing_but_what_they_measure) {
  for (const char* name : {"x86-64-avx2", "x86-64-avx512"}) {
    const target::Cpu target = target::find(name)->cpu();
    const std::string reg = target.vector_bytes == 64 ? "%zmm" : "%ymm";
    const auto chains = static_cast<int>(roofline_chains(target));
    const std::string fma = assembly(fma_program(target, 2, 100), target);
    EXPECT_EQ(count(fma, "vfmadd"), chains * kFmaUnroll) << name << fma;
    const size_t first = fma.find("vfmadd");
    const std::string loop = fma.substr(first, fma.rfind("vfmadd") - first);
    EXPECT_EQ(count(loop, "("), 0) << name << " goes to memory" << loop;
    const Stream stream = {.tiles = 2, .rows = 10, .repeats = 5};
    EXPECT_EQ(count(assembly(read_program(target, stream), target), "vaddps"), chains) << name;
    // The chains are stored too, at the end.
    EXPECT_EQ(count(assembly(write_program(target, stream), target), "vmovaps\t" + reg) +
                  count(assembly(write_program(target, stream), target), "vmovups\t" + reg),
              2 * chains)
        << name;
  }
}

TEST(measure_roofline, programs_are_well_formed) {
  const target::Cpu& host = target::host().cpu();
  const Stream stream = {.tiles = 2, .rows = 3, .repeats = 5};
  for (const ir::Program& program :
       {fma_program(host, 2, 7), read_program(host, stream), write_program(host, stream)}) {
    const Status status = ir::verify(program);
    EXPECT_TRUE(status.ok()) << program.name << ": " << status.message();
  }
}

TEST(measure_roofline, data_live_where_they_should) {
  target::Cpu target = target::find("x86-64-avx512")->cpu();
  target.caches = {{1, 48 << 10, 64, 1, 128}, {2, 2 << 20, 64, 1, 64}, {3, 64 << 20, 64, 8, 16}};
  const std::vector<int64_t> sets = working_sets(target, 8, int64_t{1} << 30);
  EXPECT_EQ(sets, (std::vector<int64_t>{24 << 10, 1 << 20, 15 << 19, 1 << 27}));
  // One core has all of the shared cache.
  EXPECT_EQ(working_sets(target, 1, int64_t{1} << 30)[2], 8 << 20);
}

TEST(measure_roofline, fork_and_join_is_measured_of_few_and_of_all) {
  EXPECT_EQ(fork_join_threads(1), std::vector<int>());
  EXPECT_EQ(fork_join_threads(2), std::vector<int>{2});
  EXPECT_EQ(fork_join_threads(6), (std::vector<int>{2, 4, 6}));
  EXPECT_EQ(fork_join_threads(64), (std::vector<int>{2, 4, 8, 16, 32, 64}));
}

TEST(measure_roofline, finds_figures_of_this_machine) {
  const auto roofline =
      measure_roofline(target::host(), {.seconds = 0, .max_memory = int64_t{8} << 20});
  ASSERT_TRUE(roofline.ok()) << roofline.status().message();
  EXPECT_TRUE(trial::check(*roofline).ok());
  EXPECT_EQ(roofline->cores, target::host().cpu().cores);
  EXPECT_EQ(roofline->levels.size(), target::host().cpu().caches.size() + 1);
  // Far below what any machine reaches: each unit is as wrong as this only by mistake.
  EXPECT_GT(roofline->flops.one, 1e9);
  EXPECT_LT(roofline->flops.one, 1e12);
  EXPECT_GT(roofline->levels[0].read.one, 1e9);
  EXPECT_LT(roofline->levels[0].read.one, 1e13);
  const std::vector<int> threads = fork_join_threads(roofline->cores);
  ASSERT_EQ(roofline->fork_join.size(), threads.size());
  for (size_t i = 0; i < threads.size(); ++i) {
    EXPECT_EQ(roofline->fork_join[i].threads, threads[i]);
    EXPECT_GT(roofline->fork_join[i].seconds, 1e-8);
  }
}

// Rounds of one kernel: what one core reaches, what both do, and a fork and join.
RooflineRound round_of(double one, double all, double fork_join) {
  return {.rates = {{one, all}}, .fork_join = {fork_join}};
}

TEST(best_of_rounds, rounds_on_farther_cores_do_not_count) {
  BestOfRounds best;
  best.add(round_of(40, 50, 5e-7), CoreChange::kNone, CoreChange::kNone);
  best.add(round_of(46, 83, 9e-7), CoreChange::kWorse, CoreChange::kWorse);
  best.add(round_of(45, 70, 1e-7), CoreChange::kNone, CoreChange::kWorse);
  best.add(round_of(41, 49, 4e-7), CoreChange::kNone, CoreChange::kNone);
  EXPECT_EQ(best.rounds(), 2);
  const RooflineRound& found = best.best(2);
  EXPECT_EQ(found.rates[0].one, 41);
  EXPECT_EQ(found.rates[0].all, 50);
  EXPECT_EQ(found.fork_join[0], 4e-7);
}

TEST(best_of_rounds, nearer_cores_make_what_was_found_void) {
  for (const bool at_begin : {true, false}) {
    BestOfRounds best;
    best.add(round_of(46, 83, 9e-7), CoreChange::kNone, CoreChange::kNone);
    best.add(round_of(42, 60, 5e-7), at_begin ? CoreChange::kNearer : CoreChange::kNone,
             at_begin ? CoreChange::kNone : CoreChange::kNearer);
    best.add(round_of(40, 50, 4e-7), CoreChange::kNone, CoreChange::kNone);
    EXPECT_EQ(best.rounds(), at_begin ? 2 : 1);
    EXPECT_EQ(best.best(1).rates[0].all, at_begin ? 60 : 50);
  }
}

TEST(best_of_rounds, all_rounds_count_where_cores_are_never_good) {
  BestOfRounds best;
  best.add(round_of(40, 41, 5e-7), CoreChange::kWorse, CoreChange::kWorse);
  best.add(round_of(39, 42, 6e-7), CoreChange::kWorse, CoreChange::kNone);
  EXPECT_EQ(best.rounds(), 0);
  EXPECT_EQ(best.best(1).rates[0].one, 40);
  EXPECT_EQ(best.best(1).rates[0].all, 42);
  EXPECT_EQ(best.best(1).fork_join[0], 5e-7);
}

TEST(measure_roofline, ends_early_when_interrupted) {
  const std::atomic<bool> interrupted{true};
  const auto roofline = measure_roofline(
      target::host(), {.seconds = 0, .max_memory = 1 << 20, .interrupted = &interrupted});
  ASSERT_FALSE(roofline.ok());
  EXPECT_EQ(roofline.status().code(), Code::kCancelled);
}

}  // namespace
}  // namespace hone::measure
