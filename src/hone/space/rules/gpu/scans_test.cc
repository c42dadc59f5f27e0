#include "hone/compute/dag_testing.h"
#include "hone/space/rules/gpu/gpu_testing.h"

namespace hone::space {
namespace {

using namespace compute::testing;

std::string default_steps(const compute::Dag& dag, int sms = 2) {
  target::Target target = small_gpu();
  target.gpu().sms = sms;
  const Result<Space> space = Space::create(dag, target);
  EXPECT_TRUE(space.ok()) << space.status().message();
  return space.ok() ? schedule::to_string(space->steps(space->default_point())) : "";
}

// A row that a block has, or several: of threads with one to 16 elements, in one round or more.
TEST(gpu_scans, blocks_share_rows) {
  for (const int64_t n : {1, 2, 3, 7, 13, 17, 31, 33, 64, 97, 300, 1031}) {
    for (const int64_t rows : {1, 3}) expect_points(running_sum(rows, n), 4);
  }
  expect_points(running_sum(1, 16900), 2);
  EXPECT_EQ(default_steps(running_sum(3, 300)).rfind("block_body(running_sum, 64)", 0), 0);
}

TEST(gpu_scans, few_long_rows_and_columns_are_cut_into_parts) {
  for (const compute::Dag& dag : {running_sum(2, 97, 5), running_sum(3, 300, 2)}) {
    expect_points(dag, 2);
    EXPECT_EQ(default_steps(dag).rfind("rfactor(running_sum, k, ", 0), 0) << default_steps(dag);
  }
  const std::string steps = default_steps(running_sum(1, 1 << 20), 132);
  EXPECT_EQ(steps.rfind("rfactor(running_sum, k, ", 0), 0) << steps;
}

TEST(gpu_scans, short_and_many_rows_stay_whole) {
  for (const compute::Dag& dag : {running_sum(3, 31), running_sum(2000, 63)}) {
    EXPECT_EQ(default_steps(dag).rfind("split(running_sum", 0), 0) << default_steps(dag);
  }
}

}  // namespace
}  // namespace hone::space
