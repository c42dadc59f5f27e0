#include "hone/ir/passes/gpu/insert_barriers.h"

#include <gtest/gtest.h>

#include "hone/ir/gpu/check_barriers.h"
#include "hone/ir/passes/check_pass_testing.h"
#include "hone/ir/random_gpu_program.h"

namespace hone::ir {
namespace {

bool races(const Program& program) {
  std::vector<Tensor> args = random_arguments(program, 1);
  const Status ran = run(program, args, {.check_races = true});
  EXPECT_TRUE(ran.ok() || ran.message().starts_with("race for")) << ran.message();
  return !ran.ok();
}

// Of random programs, the pass makes ones that are proved and have no races. Whatever the
// interpreter finds to race, because a barrier is missing, the proof refuses, too.
TEST(insert_barriers, random_programs_are_free_of_races_and_the_proof_finds_what_the_run_finds) {
  int changed = 0, barriers = 0, racing = 0, refused = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const Program before = random_gpu_program(seed);
    const Program after = insert_barriers(before);
    const Status proof = check_barriers(after);
    ASSERT_TRUE(proof.ok()) << "seed " << seed << ": " << proof.message() << "\n" << print(after);
    ASSERT_EQ(testing::difference(before, after, seed), "") << seed << print(after);
    ASSERT_EQ(print(insert_barriers(after)), print(after)) << "a second run changes nothing";
    changed += print(before) != print(after) ? 1 : 0;
    for (const Program& fewer : testing::without_one_barrier(after)) {
      ++barriers;
      const bool is_refused = !check_barriers(fewer).ok(), is_racing = races(fewer);
      refused += is_refused ? 1 : 0;
      racing += is_racing ? 1 : 0;
      ASSERT_TRUE(is_refused || !is_racing) << seed << print(fewer);
    }
  }
  EXPECT_GT(changed, 140);
  EXPECT_GT(refused, barriers * 8 / 10) << "of " << barriers << " barriers";
  EXPECT_GT(racing, barriers * 6 / 10) << "of " << barriers << " barriers";
}

}  // namespace
}  // namespace hone::ir
