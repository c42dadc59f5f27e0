#include <gtest/gtest.h>

#include "hone/backend/cpu/test_support.h"
#include "hone/backend/results_testing.h"
#include "hone/ir/random_program.h"

namespace hone::backend::cpu {
namespace {

void run_seeds(uint64_t first, uint64_t count, const ir::RandomProgramOptions& options) {
  uint64_t compared = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const ir::Program program = ir::random_program(seed, options);
    if (!testing::is_defined(program, seed)) continue;
    ++compared;
    ASSERT_EQ(compare_with_interpreter(program, seed, 1e-4), "");
  }
  EXPECT_GT(compared, count / 2);
}

TEST(random_programs, machine_code_equals_the_interpreter) { run_seeds(1, 120, {}); }

TEST(random_programs, machine_code_equals_the_interpreter_on_long_loops) {
  ir::RandomProgramOptions options;
  options.max_extent = 24;
  run_seeds(1000, 20, options);
}

}  // namespace
}  // namespace hone::backend::cpu
