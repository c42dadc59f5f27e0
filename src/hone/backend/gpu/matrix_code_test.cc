#include "hone/backend/gpu/code_batch_testing.h"
#include "hone/backend/gpu/space_points_testing.h"
#include "hone/compute/half_testing.h"
#include "hone/target/gpu_table.h"

// Products by matrix instructions, as code of CUDA: what the space chooses for a GPU without
// measuring has the instructions that it is made for, and nothing in local memory.

namespace hone::backend::gpu {
namespace {

using namespace compute::testing;

target::Target described(std::string_view name) {
  for (const target::NamedGpu& gpu : target::gpu_table()) {
    if (gpu.name == name) return {.name = std::string(name), .part = gpu.gpu};
  }
  ADD_FAILURE() << "no GPU " << name;
  return {};
}

class MatrixCode : public testing::CudaTest {
 protected:
  void add_default(const compute::Dag& dag, const target::Target& target,
                   trial::Accuracy accuracy = trial::Accuracy::kDefault, int samples = 0) {
    SCOPED_TRACE(compute::describe(dag));
    const Result<space::Space> space = space::Space::create(dag, target, accuracy);
    ASSERT_TRUE(space.ok()) << space.status().message();
    testing::for_points(*space, {space->default_point()}, samples, 1,
                        [this](const ir::Program& program) {
                          const int before = added_;
                          if (auto text = print_c(program, Dialect::kCuda); !text.ok())
                            fmt::print("WHY {}\n{}\n", text.status().message(), ir::print(program));
                          add(program);
                          EXPECT_EQ(added_, before + 1) << "there is no code for the candidate";
                        });
  }
  // Expects kernels to have matrix instructions, unless they add up parts of sums, and nothing in
  // local memory.
  Cubin expect_matrices(const std::string& arch) {
    SCOPED_TRACE(arch);
    Cubin cubin = expect_compiled({arch});
    int with_matrices = 0;
    for (const KernelNote& kernel : cubin.kernels) {
      SCOPED_TRACE(kernel.symbol);
      EXPECT_EQ(kernel.spill_bytes, 0);
      EXPECT_EQ(kernel.stack_bytes, 0);
      const CubinInstructions found = count_instructions(cubin.data, kernel.symbol).value();
      EXPECT_EQ(found.local, 0);
      with_matrices += found.matrix > 0 ? 1 : 0;
    }
    EXPECT_EQ(with_matrices, added_);
    return cubin;
  }
};

TEST_F(MatrixCode, half_precision_products) {
  for (const char* arch : {"sm_80", "sm_90a"}) {
    start_over();
    const target::Target target = described(fmt::format("cuda-{}", arch));
    for (const DType type : {DType::kF16, DType::kBF16}) {
      add_default(half_gemm(2048, 4096, 4096, {.type = type}), target);
      add_default(half_gemm(128, 768, 768, {.type = type, .transposed_weight = true}), target);
      add_default(half_gemm(197, 100, 72, {.type = type, .batch = 8}), target);
    }
    const Cubin cubin = expect_matrices(arch);
    for (const KernelNote& kernel : cubin.kernels) {
      const CubinInstructions found = count_instructions(cubin.data, kernel.symbol).value();
      EXPECT_EQ(found.load_matrix > 0, found.matrix > 0) << kernel.symbol;
      EXPECT_EQ(found.async_copy > 0, found.matrix > 0) << kernel.symbol;
    }
  }
}

// Windows are copied 16 bytes at a time, and a weight is laid out for that at compile time.
TEST_F(MatrixCode, half_precision_convolutions) {
  const target::Target target = described("cuda-sm_90a");
  ConvShape shape;
  shape.h = shape.w = 28, shape.ic = shape.oc = 128;
  add_default(half_conv2d(shape), target);
  shape.h = shape.w = 7, shape.ic = shape.oc = 512, shape.stride = 2;
  add_default(half_conv2d(shape, DType::kBF16), target);
  const Cubin cubin = expect_compiled({"sm_80"});
  int with_matrices = 0;
  for (const KernelNote& kernel : cubin.kernels) {
    EXPECT_EQ(kernel.spill_bytes + kernel.stack_bytes, 0) << kernel.symbol;
    const CubinInstructions found = count_instructions(cubin.data, kernel.symbol).value();
    if (found.matrix == 0) continue;
    ++with_matrices;
    EXPECT_GT(found.load_matrix, 0) << kernel.symbol;
    EXPECT_GT(found.async_copy, 0) << kernel.symbol;
    EXPECT_EQ(found.shared_store, 0) << kernel.symbol << " copies elements one by one";
  }
  EXPECT_EQ(with_matrices, 2);
}

TEST_F(MatrixCode, float32_in_tf32) {
  const target::Target target = described("cuda-sm_90a");
  add_default(gemm(1024, 1024, 1024), target, trial::Accuracy::kFast);
  ConvShape shape;
  shape.h = shape.w = 28, shape.ic = 64, shape.oc = 64;
  add_default(conv2d(shape), target, trial::Accuracy::kFast);
  (void)expect_matrices("sm_80");
}

// Attention has both products by matrix instructions, and scores are never in memory. One query of
// many keys has blocks for parts of them, and a kernel that joins these.
TEST_F(MatrixCode, attentions) {
  for (const char* arch : {"sm_80", "sm_90a"}) {
    start_over();
    const target::Target target = described(fmt::format("cuda-{}", arch));
    for (const DType type : {DType::kF16, DType::kBF16}) {
      add_default(half_attention(12, 128, 128, 64, type), target);
      add_default(half_attention(12, 384, 384, 64, type), target);
      add_default(half_attention(12, 197, 197, 64, type), target);
      add_default(half_attention(12, 1, 1024, 64, type), target);
    }
    const Cubin cubin = expect_compiled({arch});
    int with_matrices = 0;
    for (const KernelNote& kernel : cubin.kernels) {
      SCOPED_TRACE(kernel.symbol);
      EXPECT_EQ(kernel.spill_bytes + kernel.stack_bytes, 0);
      const CubinInstructions found = count_instructions(cubin.data, kernel.symbol).value();
      if (found.matrix == 0) continue;
      ++with_matrices;
      EXPECT_GT(found.load_matrix, 0);
    }
    EXPECT_EQ(with_matrices, added_);
  }
}

TEST_F(MatrixCode, attentions_in_tf32) {
  const target::Target target = described("cuda-sm_90a");
  add_default(attention(12, 128, 128, 64), target, trial::Accuracy::kFast);
  add_default(attention(12, 197, 197, 64), target, trial::Accuracy::kFast);
  (void)expect_matrices("sm_80");
}

// Points of any kind, on extents that leave tails, have code.
TEST_F(MatrixCode, points_with_tails) {
  const target::Target target = described("cuda-sm_80");
  for (const int64_t n : {17, 33})
    add_default(half_gemm(n, 97 - n, 40), target, trial::Accuracy::kDefault, 3);
  for (const int64_t n : {7, 17, 33})
    add_default(half_attention(2, n, 97 - n, n), target, trial::Accuracy::kDefault, 2);
  (void)expect_compiled({"sm_80"});
}

}  // namespace
}  // namespace hone::backend::gpu
