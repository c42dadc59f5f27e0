#include "hone/measure/measure_roofline.h"

#include <gtest/gtest.h>

#include "hone/codegen/llvm/compiler.h"
#include "hone/ir/verifier.h"
#include "hone/measure/roofline_programs.h"

namespace hone::measure {
namespace {

int count(const std::string& text, std::string_view what) {
  int found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

std::string assembly(const ir::Program& program, const target::Target& target) {
  const auto code = codegen::compile(program, target, {.keep_assembly = true});
  EXPECT_TRUE(code.ok()) << code.status().message();
  return code.ok() ? code->assembly : "";
}

TEST(measure_roofline, the_kernels_are_nothing_but_what_they_measure) {
  for (const char* name : {"x86-64-avx2", "x86-64-avx512"}) {
    const target::Target target = *target::find(name);
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
  const target::Target& host = target::host();
  const Stream stream = {.tiles = 2, .rows = 3, .repeats = 5};
  for (const ir::Program& program :
       {fma_program(host, 2, 7), read_program(host, stream), write_program(host, stream)}) {
    const Status status = ir::verify(program);
    EXPECT_TRUE(status.ok()) << program.name << ": " << status.message();
  }
}

TEST(measure_roofline, data_live_where_they_should) {
  target::Target target = *target::find("x86-64-avx512");
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
  EXPECT_TRUE(check(*roofline).ok());
  EXPECT_EQ(roofline->cores, target::host().cores);
  EXPECT_EQ(roofline->levels.size(), target::host().caches.size() + 1);
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

TEST(measure_roofline, ends_early_when_interrupted) {
  const std::atomic<bool> interrupted{true};
  const auto roofline = measure_roofline(
      target::host(), {.seconds = 0, .max_memory = 1 << 20, .interrupted = &interrupted});
  ASSERT_FALSE(roofline.ok());
  EXPECT_EQ(roofline.status().code(), Code::kCancelled);
}

}  // namespace
}  // namespace hone::measure
