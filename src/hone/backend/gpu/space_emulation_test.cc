#include "hone/backend/gpu/emulated_run_testing.h"
#include "hone/backend/gpu/space_points_testing.h"
#include "hone/compute/half_testing.h"

// Points of the spaces of GPUs, on extents that leave tails of every kind, as CUDA C that this
// machine runs, and that a GPU runs where there is one.

namespace hone::backend::gpu {
namespace {

using namespace compute::testing;
using trial::Accuracy;

template <typename Runner>
class SpaceInCuda : public Runner {
 protected:
  // Adds programs of the default points of all sketches and of some random points.
  void add_points(const compute::Dag& dag, const target::Target& target, int samples,
                  double tolerance, Accuracy accuracy = Accuracy::kDefault) {
    const auto add_program = [&](const ir::Program& program) {
      this->add(program, seed_, tolerance);
    };
    testing::for_points(dag, samples, ++seed_, add_program, target, accuracy);
  }

 private:
  uint64_t seed_ = 0;
};
using Runners = ::testing::Types<testing::EmulatedCudaTest, testing::CudaDeviceTest>;
TYPED_TEST_SUITE(SpaceInCuda, Runners, testing::RunnerName);

// A GPU of few SMs with asynchronous copies.
target::Target async_gpu() {
  target::Target target = testing::small_gpu();
  target.gpu().async_copy = true;
  return target;
}
// One that also has matrix instructions.
target::Target matrix_gpu() {
  target::Target target = async_gpu();
  target.gpu().matrix = {{16, 8, 8, DType::kF32, DType::kF32, 512},
                         {16, 8, 16, DType::kBF16, DType::kF32, 1024},
                         {16, 8, 16, DType::kF16, DType::kF32, 1024}};
  return target;
}

TYPED_TEST(SpaceInCuda, tasks_of_every_rule) {
  for (const compute::Dag& dag : testing::tasks_of_every_rule(13))
    this->add_points(dag, testing::small_gpu(), 1, 1e-4);
  this->expect_right();
  for (const compute::Dag& dag : testing::tasks_of_every_rule(33))
    this->add_points(dag, async_gpu(), 1, 1e-4);
  this->expect_right();
}

TYPED_TEST(SpaceInCuda, tiles_that_are_copied_ahead) {
  ConvShape shape;
  shape.h = 9, shape.w = 5, shape.ic = 33, shape.oc = 16;
  for (const int64_t n : {7, 97}) {
    this->add_points(gemm(n, 98 - n, 64), async_gpu(), 2, 1e-5);
    this->add_points(gemm(33, 16, n), async_gpu(), 2, 1e-5);
    this->add_points(product_of_two(2, n, 13, 32), async_gpu(), 1, 1e-5);
  }
  this->add_points(conv2d(shape), async_gpu(), 2, 1e-4);
  this->expect_right();
}

TYPED_TEST(SpaceInCuda, products_by_matrix_instructions) {
  for (const int64_t n : {1, 31, 97}) {
    this->add_points(half_gemm(n, 98 - n, 17), matrix_gpu(), 2, 2e-3);
    this->add_points(half_gemm(33, n, 16, {.type = DType::kBF16}), matrix_gpu(), 1, 1e-2);
    this->add_points(half_gemm(16, 24, n, {.transposed_weight = true}), matrix_gpu(), 1, 2e-3);
    this->add_points(gemm(n, 40, 33), matrix_gpu(), 2, 2e-3, Accuracy::kFast);
  }
  this->add_points(half_gemm(24, 40, 48, {.transposed_data = true}), matrix_gpu(), 2, 2e-3);
  this->add_points(half_gemm(7, 40, 64, {.batch = 3}), matrix_gpu(), 2, 2e-3);
  this->add_points(product_of_two(3, 17, 13, 31), matrix_gpu(), 2, 2e-3, Accuracy::kFast);
  this->expect_right();
}

// Tails of queries, keys and channels, keys that a query does not see, one query of many keys, a
// mask of each query, and float32.
TYPED_TEST(SpaceInCuda, attentions_by_matrix_instructions) {
  for (const DType type : {DType::kF16, DType::kBF16}) {
    const double tolerance = type == DType::kF16 ? 4e-3 : 3e-2;
    this->add_points(half_attention(2, 33, 97, 16, type), matrix_gpu(), 1, tolerance);
    this->add_points(half_attention(1, 13, 40, 24, type, 9), matrix_gpu(), 1, tolerance);
    this->add_points(half_attention(1, 1, 200, 32, type), matrix_gpu(), 1, tolerance);
  }
  compute::Dag masked = half_attention(1, 17, 24, 16);
  widen_mask(masked, 17);
  this->add_points(masked, matrix_gpu(), 1, 4e-3);
  this->add_points(attention(1, 17, 40, 24), matrix_gpu(), 1, 4e-3, Accuracy::kFast);
  this->expect_right();
}

TYPED_TEST(SpaceInCuda, attentions_by_threads) {
  for (const int64_t keys : {96, 200, 321}) {
    this->add_points(attention(2, 1, keys, 8), async_gpu(), 2, 1e-4);
    this->add_points(attention(1, 7, keys, 8), async_gpu(), 2, 1e-4);
  }
  this->expect_right();
}

TYPED_TEST(SpaceInCuda, convolutions_by_matrix_instructions) {
  for (const int64_t stride : {1, 2}) {
    ConvShape shape;
    shape.h = 7, shape.w = 9, shape.ic = 8 + stride, shape.oc = 24, shape.stride = stride;
    this->add_points(half_conv2d(shape), matrix_gpu(), 2, 2e-3);
    this->add_points(conv2d(shape), matrix_gpu(), 1, 2e-3, Accuracy::kFast);
    shape.ic = 16, shape.oc = 17;
    this->add_points(half_conv2d(shape, DType::kBF16), matrix_gpu(), 2, 1e-2);
  }
  this->expect_right();
}

// The tiles that are chosen for GPUs of the table, of several warps.
TYPED_TEST(SpaceInCuda, default_tiles_of_large_gpus) {
  const target::Target a100 = *target::find("cuda-sm_80"), h100 = *target::find("cuda-sm_90a");
  this->add_points(half_gemm(130, 72, 80), a100, 1, 2e-3);
  this->add_points(half_gemm(64, 264, 48, {.type = DType::kBF16}), h100, 1, 1e-2);
  this->add_points(gemm(129, 65, 40), a100, 1, 2e-3, Accuracy::kFast);
  this->add_points(gemm(129, 65, 40), h100, 1, 1e-5);
  this->add_points(attention(2, 65, 97, 32), h100, 1, 1e-4);
  this->add_points(softmax(3, 1024, 1), a100, 1, 1e-5);
  this->add_points(transpose(64, 33, 8, 0), h100, 1, 0);
  this->expect_right();
}

// Sums, scans and columns in parts over blocks: tasks that are too small for the GPU otherwise.
TYPED_TEST(SpaceInCuda, long_sums_and_scans) {
  target::Target large = async_gpu();
  large.gpu().sms = 132;
  for (const compute::Dag& dag :
       {gemm(5, 33, 1027), few_columns(3, 7, 515, true), running_sum(3, 4099), sum_of_two(2, 5003),
        arg_max(2, 1031, 3), softmax(2, 2053, 1)})
    this->add_points(dag, large, 1, 1e-3);
  this->expect_right();
}

// A warp has a row, and its lanes exchange their parts.
TYPED_TEST(SpaceInCuda, rows_that_lanes_reduce) {
  target::Target target = testing::small_gpu();
  target.gpu().subgroups = true;
  target.gpu().sms = 1;
  for (const compute::Dag& dag : {softmax(33, 128, 1), normalized_rows(42, 256)}) {
    const Result<space::Space> space = space::Space::create(dag, target);
    ASSERT_TRUE(space.ok()) << space.status().message();
    const std::string steps = schedule::to_string(space->steps(space->default_point()));
    EXPECT_NE(steps.find(", lane)"), std::string::npos) << steps;
    this->add_points(dag, target, 0, 1e-5);
  }
  this->expect_right();
}

TYPED_TEST(SpaceInCuda, attention_and_winograd) {
  for (const int64_t n : {7, 33}) {
    this->add_points(attention(2, n, 64 - n, 8), async_gpu(), 1, 1e-4);
    this->add_points(attention(1, 17, 97, n), async_gpu(), 1, 1e-4);
  }
  ConvShape shape;
  shape.h = 9, shape.w = 13, shape.ic = 5, shape.oc = 17;
  this->add_points(conv2d(shape), async_gpu(), 3, 1e-3);
  this->expect_right();
}

}  // namespace
}  // namespace hone::backend::gpu
