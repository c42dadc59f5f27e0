// Counted instructions of sampled schedules of every kind of task against those that the processor
// executes (count_code.h): where the count says that nothing was assumed, it must be exact; all
// others lie within 2 %.
#include <gtest/gtest.h>

#include <cstdio>

#include "hone/backend/cpu/count_code_testing.h"
#include "hone/backend/cpu/test_support.h"
#include "hone/compute/dag_testing.h"
#include "hone/ir/passes/pipeline.h"
#include "hone/schedule/lower.h"
#include "hone/space/space.h"

namespace hone::backend::cpu {
namespace {

using namespace compute::testing;

constexpr int kPoints = 4;
constexpr int64_t kMostInstructions = 10'000;  // 0.2 s of steps

void check_kind(const char* kind, const compute::Dag& dag) {
  int64_t phases = 0, exact = 0;
  double worst = 0;
  for (const target::Target& target : runnable_targets()) {
    const Result<space::Space> space = space::Space::create(dag, target);
    ASSERT_TRUE(space.ok()) << space.status().message();
    Rng rng(11);
    for (int i = 0; i < kPoints; ++i) {
      const space::Point point = i == 0 ? space->default_point() : space->sample(rng);
      const schedule::Steps steps = space->steps(point);
      const Result<ir::Program> program =
          schedule::lower(dag, steps, ir::cpu_pipeline(), {.parameters = target.passes});
      ASSERT_TRUE(program.ok()) << program.status().message();
      const CountCheck check = check_counts(*program, target, kMostInstructions);
      if (check.skipped) GTEST_SKIP() << "nothing can be stepped through here";
      ASSERT_EQ(check.wrong, "") << kind << "\n" << schedule::to_string(steps);
      phases += check.phases, exact += check.exact;
      worst = std::max(worst, check.worst);
    }
  }
  EXPECT_GT(exact, 0) << kind;
  EXPECT_LE(worst, 0.02) << kind;
  std::printf("%s: %d of %d phases are exact, others within %.2f %%\n", kind,
              static_cast<int>(exact), static_cast<int>(phases), 100 * worst);
}

TEST(count_space_code, products) { check_kind("products", gemm(7, 24, 17)); }
TEST(count_space_code, convolutions) {
  check_kind("convolutions", conv2d({.h = 6, .w = 5, .ic = 4, .oc = 16}));
}
TEST(count_space_code, depthwise_convolutions) { check_kind("depthwise", depthwise(9, 9, 16, 1)); }
TEST(count_space_code, pools) {
  check_kind("maximum pools", max_pool(8, 8, 16));
  check_kind("average pools", global_pool(7, 7, 24));
}
TEST(count_space_code, rows) {
  check_kind("softmax", softmax(5, 33, 1));
  check_kind("normalized rows", normalized_rows(6, 40));
}
TEST(count_space_code, points) {
  check_kind("sums of two", sum_of_two(7, 70));
  check_kind("transposes", transpose(16, 9, 32, 0));
}
TEST(count_space_code, attention) { check_kind("attention", attention(2, 5, 9, 8)); }
TEST(count_space_code, rows_by_index) { check_kind("gathers", gather_rows(5, 24, 11)); }

}  // namespace
}  // namespace hone::backend::cpu
