#include "hone/ir/passes/random_pattern.h"

#include <gtest/gtest.h>

#include <map>

#include "hone/ir/passes/check_pass_testing.h"
#include "hone/ir/random_program.h"

namespace hone::ir {
namespace {

// Returns how many of these programs each pass changes. All of them must compute the same
// afterwards.
std::map<std::string_view, int> fired(Program (*make)(uint64_t), uint64_t seeds) {
  std::map<std::string_view, int> changed;
  const std::vector<Pass> passes = testing::distinct(cpu_pipeline());
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    const Program before = make(seed);
    for (const Pass& pass : passes) {
      const Program after = pass.run(before, testing::kEager);
      const std::string difference = testing::difference(before, after, seed);
      EXPECT_EQ(difference, "") << pass.name << " seed " << seed << "\n"
                                << print(before) << print(after);
      if (!difference.empty()) return changed;
      changed[pass.name] += print(before) != print(after);
    }
  }
  return changed;
}

TEST(random_pattern, every_pass_changes_programs_and_keeps_what_they_compute) {
  const auto changed = fired(random_case, 1000);
  for (const auto& [pass, times] : changed) EXPECT_GT(times, 20) << pass;
}

TEST(random_pattern, passes_keep_values_of_all_types) {
  fired([](uint64_t seed) { return random_program(seed); }, 400);
}

TEST(random_pattern, programs_are_valid_and_run) {
  for (const RandomPattern& pattern : random_patterns()) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
      Rng rng(seed);
      const Program program = pattern.make(rng);
      EXPECT_EQ(testing::difference(program, program, seed), "")
          << pattern.name << " seed " << seed << "\n"
          << print(program);
    }
  }
}

}  // namespace
}  // namespace hone::ir
