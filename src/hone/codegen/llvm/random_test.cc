#include <gtest/gtest.h>

#include "hone/codegen/llvm/test_support.h"
#include "hone/ir/random_program.h"

namespace hone::codegen {
namespace {

void run_seeds(uint64_t first, uint64_t count, const ir::RandomProgramOptions& options) {
  for (uint64_t seed = first; seed < first + count; ++seed) {
    ASSERT_EQ(compare_with_interpreter(ir::random_program(seed, options), seed, 1e-4), "");
  }
}

TEST(random_programs, machine_code_equals_the_interpreter) { run_seeds(1, 150, {}); }

TEST(random_programs, machine_code_equals_the_interpreter_on_long_loops) {
  ir::RandomProgramOptions options;
  options.max_extent = 24;
  run_seeds(1000, 20, options);
}

}  // namespace
}  // namespace hone::codegen
