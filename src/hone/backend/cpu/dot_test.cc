// Sums along contiguous elements as machine code for every instruction set that runs here.
#include <gtest/gtest.h>

#include "hone/backend/cpu/test_support.h"
#include "hone/schedule/lower.h"
#include "hone/space/rules/cpu/dot_testing.h"
#include "hone/space/space.h"
#include "hone/target/target.h"

namespace hone::backend::cpu {
namespace {

// The sketches whose steps have a word, at their rule of thumb and elsewhere.
void expect_equal(const compute::Dag& dag, const target::Target& target, std::string_view word,
                  Rng& rng) {
  const Result<space::Space> space = space::Space::create(dag, target);
  ASSERT_TRUE(space.ok()) << space.status().message();
  int seen = 0;
  for (int i = 0; i < 30 && seen < 2; ++i) {
    const space::Point point =
        i < space->num_sketches() ? space->default_point(i) : space->sample(rng);
    const schedule::Steps steps = space->steps(point);
    if (schedule::to_string(steps).find(word) == std::string::npos) continue;
    ++seen;
    const Result<ir::Program> program = schedule::lower(dag, steps);
    ASSERT_TRUE(program.ok()) << program.status().message();
    EXPECT_EQ(compare_with_interpreter(*program, 5), "") << schedule::to_string(steps);
  }
  EXPECT_GT(seen, 0);
}

TEST(dot, lanes_along_the_sum_equal_the_interpreter_for_odd_shapes) {
  Rng rng(3);
  const std::vector<target::Target> targets = runnable_targets();
  for (const target::Target& target : targets) {
    for (const int64_t k : {17, 31, 33, 97}) {
      for (const int64_t n : {1, 2, 3, 7, 8}) {
        const bool constant = rng.chance(0.5);
        SCOPED_TRACE(fmt::format("{} {} {}", target.name, n, k));
        expect_equal(
            space::dot_product(
                {.m = rng.choice<int64_t>({1, 2, 3}), .n = n, .k = k, .constant = constant}),
            target, "strided", rng);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(dot, a_sum_in_parts_equals_the_interpreter) {
  Rng rng(4);
  for (const target::Target& target : runnable_targets())
    expect_equal(space::dot_product({.n = 33, .k = 16384}), target, "(matmul.rf,", rng);
}

}  // namespace
}  // namespace hone::backend::cpu
