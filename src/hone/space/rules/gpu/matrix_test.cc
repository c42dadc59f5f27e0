#include "hone/compute/half_testing.h"
#include "hone/space/rules/gpu/gpu_testing.h"

namespace hone::space {
namespace {

using namespace compute::testing;

constexpr int64_t kOdd[] = {1, 2, 3, 7, 13, 17, 31, 33, 97};

std::string default_steps(const compute::Dag& dag, trial::Accuracy accuracy) {
  const Result<Space> space = Space::create(dag, matrix_gpu(), accuracy);
  EXPECT_TRUE(space.ok()) << space.status().message();
  return schedule::to_string(space->steps(space->default_point()));
}

TEST(gpu_matrix, products_of_odd_extents) {
  for (const int64_t n : kOdd) {
    expect_points(half_gemm(n, 98 - n, 17), 3, 2e-3, matrix_gpu(), 2);
    expect_points(half_gemm(33, n, 13, {.type = DType::kBF16}), 2, 1e-2, matrix_gpu(), 2);
    expect_points(half_gemm(17, 24, n, {.transposed_weight = true}), 2, 2e-3, matrix_gpu(), 2);
  }
  expect_points(half_gemm(24, 40, 48, {.transposed_data = true}), 3, 2e-3, matrix_gpu(), 2);
  expect_points(half_gemm(7, 40, 33, {.batch = 3}), 3, 2e-3, matrix_gpu(), 2);
}

TEST(gpu_matrix, convolutions_of_odd_extents) {
  for (const int64_t n : {1, 3, 7, 13}) {
    ConvShape shape;
    shape.h = n + 2, shape.w = 15 - n, shape.ic = n, shape.oc = 17;
    expect_points(half_conv2d(shape), 3, 2e-3, matrix_gpu(), 3);
    shape.stride = 2, shape.ic = 8, shape.oc = n + 1;
    expect_points(half_conv2d(shape, DType::kBF16), 2, 1e-2, matrix_gpu(), 3);
  }
}

// Sums with few results can be computed in parts.
TEST(gpu_matrix, sums_in_parts) {
  target::Target target = matrix_gpu();
  target.gpu().sms = 64;
  ConvShape shape;
  shape.h = 5, shape.w = 4, shape.ic = 16, shape.oc = 24;
  ConvShape column = shape;  // of one channel: its weights are rows
  column.w = column.oc = 1;
  for (const compute::Dag& dag :
       {half_gemm(17, 40, 200), half_gemm(24, 33, 255), half_conv2d(shape), half_conv2d(column)}) {
    const Result<Space> space = Space::create(dag, target);
    ASSERT_TRUE(space.ok()) << space.status().message();
    Rng rng(5);
    int seen = 0;
    for (int i = 0; i < 100 && seen < 2; ++i) {
      const Result<Candidate> candidate = space->instantiate(space->sample(rng));
      ASSERT_TRUE(candidate.ok()) << candidate.status().message();
      const std::string steps = schedule::to_string(candidate->steps);
      if (steps.find(", terms, ") == std::string::npos ||
          steps.find("rfactor") == std::string::npos)
        continue;
      ++seen;
      ASSERT_NO_FATAL_FAILURE(expect_candidate(*candidate, 2e-3));
    }
    EXPECT_EQ(seen, 2);
  }
}

TEST(gpu_matrix, float32_is_rounded_only_where_the_accuracy_is_fast) {
  const compute::Dag dag = gemm(64, 64, 64);
  EXPECT_EQ(default_steps(dag, trial::Accuracy::kDefault).find("tensorize"), std::string::npos);
  const std::string fast = default_steps(dag, trial::Accuracy::kFast);
  EXPECT_NE(fast.find(", tf32)"), std::string::npos) << fast;
  EXPECT_EQ(trial::accuracy_of(fast), trial::Accuracy::kFast);
  const std::string half = default_steps(half_gemm(64, 64, 64), trial::Accuracy::kStrict);
  EXPECT_NE(half.find("tensorize"), std::string::npos) << half;
  EXPECT_EQ(trial::accuracy_of(half), trial::Accuracy::kStrict);
}

TEST(gpu_matrix, convolutions_of_odd_extents_are_rounded_products) {
  for (const int64_t n : {1, 2, 3, 7, 13}) {
    ConvShape shape;
    shape.h = n + 2, shape.w = 15 - n, shape.ic = n, shape.oc = 17, shape.residual = n % 2 == 0;
    expect_points(conv2d(shape), 3, 1e-5, matrix_gpu(), 3, trial::Accuracy::kFast);
    shape.stride = 2, shape.ic = 8, shape.oc = n;
    expect_points(conv2d(shape), 2, 1e-5, matrix_gpu(), 3, trial::Accuracy::kFast);
  }
  expect_points(grouped_conv2d(5, 7, 3, 5, 8, 1), 3, 1e-5, matrix_gpu(), 3, trial::Accuracy::kFast);
  expect_points(product_of_two(3, 17, 13, 31), 3, 1e-5, matrix_gpu(), 2, trial::Accuracy::kFast);
}

TEST(gpu_matrix, copies_are_asynchronous_and_ahead_where_they_can_be) {
  const std::string steps = default_steps(half_gemm(256, 256, 256), trial::Accuracy::kDefault);
  for (const char* part : {"pipeline(data.left, ", "pipeline(weight.right, ", ", async)",
                           "vectorize(data.left, terms.1)", "vectorize(weight.right, columns.1)"})
    EXPECT_NE(steps.find(part), std::string::npos) << part << "\n" << steps;
}

}  // namespace
}  // namespace hone::space
