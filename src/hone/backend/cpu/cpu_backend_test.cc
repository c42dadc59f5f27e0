#include "hone/backend/cpu/cpu_backend.h"

#include <gtest/gtest.h>

#include "hone/backend/cpu/code_cache.h"
#include "hone/backend/cpu/sample_programs_testing.h"
#include "hone/backend/registry.h"
#include "hone/ir/parser.h"
#include "hone/target/target.h"

namespace hone::backend::cpu {
namespace {

TEST(cpu_backend, executables_of_equal_programs_share_one_code) {
  const ir::Program program = gemm_program({6, 16, 40, 6, 16, 8});
  const Executable first = backend::compile(program, target::host()).value();
  const int64_t compiled = code_cache().counts().compiled;
  const Executable second = backend::compile(program, target::host()).value();
  EXPECT_EQ(code_cache().counts().compiled, compiled);
  EXPECT_EQ(&first.code.str(), &second.code.str()) << "the bytes are there once";
  EXPECT_EQ(first.kind, target::Kind::kCpu);
  EXPECT_EQ(first.content, second.content);
  EXPECT_GT(first.code_bytes, 0);
  EXPECT_GT(first.cost.instructions, first.cost.optimized / 2);
}

TEST(cpu_backend, constants_are_prepared_by_a_part_that_runs_by_itself) {
  const ir::Program program = *ir::parse_program(R"(program "doubled" {
  constant W: f32[4]
  packed P: f32[4]
  output Y: f32[4]
  phase prepare {
    for i in 0..4 {
      P[i] = W[i] * 2.0
    }
  }
  phase {
    for i in 0..4 {
      Y[i] = P[i]
    }
  }
}
)");
  const Executable whole = backend::compile(program, target::host()).value();
  EXPECT_TRUE(whole.prepares_constants());
  const Executable part = prepare_part(whole);
  ASSERT_EQ(part.entries.size(), 1U);
  EXPECT_TRUE(part.prepare_code.empty());
  EXPECT_NE(part.code, whole.code);
  struct alignas(64) Floats {
    float values[4];
  } weights = {{1, 2, 3, 4}}, packed = {}, result = {};
  void* const args[] = {weights.values, packed.values, result.values};
  const LoadedPtr loaded = backend::load(part).value();
  EXPECT_TRUE(loaded->run(part.entries[0], args, nullptr, 0, part.entries[0].num_tiles, 0).ok());
  EXPECT_EQ(packed.values[3], 8);
  EXPECT_NE(loaded->function(part.entries[0].symbol), nullptr);
  EXPECT_EQ(loaded->function(whole.entries[1].symbol), nullptr) << "it is not loaded";
  EXPECT_FALSE(loaded->run(whole.entries[1], args, nullptr, 0, 1, 0).ok());
}

TEST(cpu_backend, says_what_the_inner_loop_is) {
  const target::Target target = *target::find("x86-64-avx512");
  const ir::Program program = gemm_program({6, 32, 64, 6, 32, 16});
  const Executable executable = backend::compile(program, target).value();
  const Inspection found = of(target).value()->inspect(program, executable, target).value();
  ASSERT_EQ(found.loops.size(), 1U);
  EXPECT_EQ(found.loops[0].vector_bits, 512);
  EXPECT_GT(found.loops[0].mix.fma, 0);
  EXPECT_EQ(found.registers_needed, 6 * 2 + 2);
}

TEST(cpu_backend, bytes_that_are_no_object_are_not_loaded) {
  EXPECT_FALSE(backend::load({.code = std::string("no object")}).ok());
}

}  // namespace
}  // namespace hone::backend::cpu
