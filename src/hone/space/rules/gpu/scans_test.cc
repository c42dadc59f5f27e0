#include "hone/compute/dag_testing.h"
#include "hone/space/rules/gpu/gpu_testing.h"

namespace hone::space {
namespace {

using namespace compute::testing;

TEST(gpu_scans, long_rows_are_cut_into_parts) {
  for (const int64_t n : {64, 97, 300, 1031}) {
    for (const int64_t rows : {1, 3, 33}) {
      const compute::Dag dag = running_sum(rows, n);
      expect_points(dag, 3);
      const Result<Space> space = Space::create(dag, small_gpu());
      ASSERT_TRUE(space.ok()) << space.status().message();
      const std::string steps = schedule::to_string(space->steps(space->default_point()));
      EXPECT_EQ(steps.rfind("rfactor(running_sum, k, ", 0), 0) << steps;
    }
    expect_points(running_sum(2, n, 5), 2);
  }
}

TEST(gpu_scans, short_and_many_rows_stay_whole) {
  for (const compute::Dag& dag : {running_sum(3, 31), running_sum(2000, 64)}) {
    const Result<Space> space = Space::create(dag, small_gpu());
    ASSERT_TRUE(space.ok()) << space.status().message();
    EXPECT_EQ(schedule::to_string(space->steps(space->default_point())).find("rfactor"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace hone::space
