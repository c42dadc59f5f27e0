#include "hone/compute/dag_testing.h"
#include "hone/space/rules/gpu/gpu_testing.h"

namespace hone::space {
namespace {

using namespace compute::testing;

constexpr int64_t kOdd[] = {1, 2, 3, 7, 13, 17, 31, 33, 97};

// Expects the default to be in partial results of a block's threads.
void expect_rows(const compute::Dag& dag) {
  expect_points(dag, 5);
  const Result<Space> space = Space::create(dag, small_gpu());
  ASSERT_TRUE(space.ok()) << space.status().message();
  const std::string steps = schedule::to_string(space->steps(space->default_point()));
  EXPECT_NE(steps.find(", strided)"), std::string::npos) << steps;
}

TEST(gpu_rows, softmax_and_norms) {
  for (const int64_t n : kOdd) {
    expect_rows(softmax(3, n, 1));
    expect_rows(softmax(2, n, 7));
    expect_rows(normalized_rows(5, n));
    expect_rows(softmax(n, 13, 1));
  }
  expect_rows(softmax(1, 300, 1));
}

TEST(gpu_rows, sums_of_rows_and_columns) {
  expect_rows(global_pool(9, 13, 17));
  expect_rows(gemm(1, 33, 97));
  expect_rows(gemm(3, 1, 331));
  for (const int64_t n : kOdd) {
    expect_points(global_pool(n, 3, 5), 5);
    expect_points(gemm(2, n, 31), 5);
  }
}

// A block of few threads has not even one for each of the rows that it would have together.
TEST(gpu_rows, blocks_of_few_threads_have_fewer_rows) {
  target::Target target = small_gpu();
  target.gpu().threads_per_block = 12;
  expect_points(global_pool(8, 8, 64), 5, 1e-5, target);
  expect_points(softmax(1, 64, 64), 5, 1e-5, target);
}

// Each element is read once for each reduction, and once for the result.
TEST(gpu_rows, a_block_reads_its_rows_once_for_each_reduction) {
  const compute::Dag dag = softmax(4, 97, 1);
  const Result<Space> space = Space::create(dag, small_gpu());
  ASSERT_TRUE(space.ok()) << space.status().message();
  const Result<Candidate> candidate = space->instantiate(space->default_point());
  ASSERT_TRUE(candidate.ok()) << candidate.status().message();
  const Result<ir::Program> program = schedule::lower_raw(candidate->state, candidate->bounds);
  ASSERT_TRUE(program.ok()) << program.status().message();
  std::vector<Tensor> args = schedule::integer_arguments(*program, 1);
  ir::TouchReport report;
  ASSERT_TRUE(ir::run(*program, args, {}, &report).ok());
  const ir::Touch* read = report.find(program->params[0].buffer, false);
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->count, 3 * 4 * 97);
}

}  // namespace
}  // namespace hone::space
