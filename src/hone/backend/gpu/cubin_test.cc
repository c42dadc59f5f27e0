#include "hone/backend/gpu/cubin.h"

#include "hone/backend/gpu/code_batch_testing.h"

namespace hone::backend::gpu {
namespace {

using Cubins = testing::CudaTest;

// The numbers of instructions, by code that becomes these.
TEST_F(Cubins, instructions_are_known_by_their_numbers) {
  const std::string source = R"(
extern "C" __global__ void one_fma(const float* __restrict__ x, float* y) {
  y[threadIdx.x] = fmaf(x[threadIdx.x], x[1], x[2]);
}
extern "C" __global__ void others(const float* __restrict__ x, float* y) {
  y[threadIdx.x] = x[0] + x[1];
  y[threadIdx.x + 40] = x[7] * x[9];
  y[1] = fmaxf(x[3], x[5]);
}
extern "C" __global__ void doubles(const double* __restrict__ x, double* y) {
  y[threadIdx.x] = fma(x[0], x[1], x[2]);
  y[40] = x[4] + x[5];
}
extern "C" __global__ void shared(const float* __restrict__ x, float* y) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = s[63 - threadIdx.x];
}
extern "C" __global__ void local(const int* x, float* y, int n) {
  float a[64];
  for (int i = 0; i < n; ++i) a[x[i]] = i;
  y[0] = a[x[n]];
}
extern "C" __global__ void matrix(float* y, unsigned a, unsigned b) {
  float d[4] = {0, 0, 0, 0};
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
               "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a), "r"(b), "r"(a), "r"(b), "r"(a), "r"(b));
  y[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
}
extern "C" __global__ void load_matrix(const float* x, unsigned* y) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  unsigned a;
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
               : "=r"(a) : "r"((unsigned)__cvta_generic_to_shared(&s[threadIdx.x * 4 % 64])));
  y[threadIdx.x] = a;
}
extern "C" __global__ void copies(const float4* x, float* y) {
  __shared__ float4 s[32];
  const unsigned to = (unsigned)__cvta_generic_to_shared(&s[threadIdx.x]);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(to), "l"(x + threadIdx.x));
  asm volatile("cp.async.wait_all;" : : : "memory");
  y[threadIdx.x] = s[threadIdx.x].y;
}
)";
  for (const char* arch : {"sm_80", "sm_90a"}) {
    SCOPED_TRACE(arch);
    const Result<Cubin> cubin = compile_cuda(source, arch);
    ASSERT_TRUE(cubin.ok()) << cubin.status().message();
    const auto of = [&](const char* symbol) {
      return count_instructions(cubin->data, symbol).value();
    };
    EXPECT_EQ(of("one_fma").fma, 1);
    EXPECT_EQ(of("one_fma").global_load, 3);
    EXPECT_EQ(of("one_fma").global_store, 1);
    EXPECT_EQ(of("others").arithmetic, 3);
    EXPECT_EQ(of("others").fma, 0);
    EXPECT_EQ(of("doubles").fma, 1);
    EXPECT_EQ(of("doubles").arithmetic, 1);
    EXPECT_EQ(of("shared").shared_load, 1);
    EXPECT_EQ(of("shared").shared_store, 1);
    EXPECT_EQ(of("shared").barrier, 1);
    EXPECT_EQ(of("shared").local, 0);
    EXPECT_GT(of("local").local, 1);
    EXPECT_EQ(of("matrix").matrix, 1);
    EXPECT_EQ(of("copies").async_copy, 1);
    EXPECT_EQ(of("load_matrix").load_matrix, 1);
    EXPECT_EQ(of("load_matrix").shared_load, 1);
    EXPECT_LT(of("one_fma").all, of("one_fma").bytes / 16) << "what does nothing is not counted";
    EXPECT_EQ(count_instructions(cubin->data, "none").status().message(),
              "the cubin has no section .text.none");
  }
  EXPECT_EQ(count_instructions("abc", "fma").status().message(), "the cubin is not valid");
}

// Kernels whose stack, spills and least registers follow from the source.
const char* const kStacks = R"(
extern "C" __global__ void plain(const float* __restrict__ x, float* y) {
  y[threadIdx.x] = x[threadIdx.x] * 2.0f;
}
// A thread has 65536 / 1024 registers, and 96 numbers that are alive at a time.
extern "C" __global__ void __launch_bounds__(1024) spills(const float* __restrict__ x, float* y) {
  float a[96];
#pragma unroll
  for (int i = 0; i < 96; ++i) a[i] = x[threadIdx.x * 96 + i];
  __syncthreads();
  for (int k = 0; k < 10; ++k) {
#pragma unroll
    for (int i = 0; i < 96; ++i) a[i] = a[i] * a[(i + 7) % 96] + x[i + k];
  }
#pragma unroll
  for (int i = 0; i < 96; ++i) y[threadIdx.x * 96 + i] = a[i];
}
// An array that is indexed by data, and elements of it at known places.
extern "C" __global__ void array(const int* x, float4* y, int n) {
  float4 a[16];
  for (int i = 0; i < n; ++i) a[x[i]] = make_float4(i, i, 2, 3);
  a[3] = y[2];
  a[4] = y[7];
  y[0] = a[x[n]];
}
)";

TEST_F(Cubins, registers_and_stack_are_those_of_the_file) {
  for (const char* arch : {"sm_80", "sm_90a", "sm_120"}) {
    SCOPED_TRACE(arch);
    const Result<Cubin> cubin = compile_cuda(kStacks, arch);
    ASSERT_TRUE(cubin.ok()) << cubin.status().message();
    ASSERT_EQ(cubin->kernels.size(), 3);
    for (const KernelNote& kernel : cubin->kernels) {
      SCOPED_TRACE(kernel.symbol);
      if (kernel.symbol == "plain") {
        EXPECT_GE(kernel.registers, 4);
        EXPECT_LE(kernel.registers, 24);
        EXPECT_EQ(kernel.stack_bytes, 0);
        EXPECT_EQ(kernel.spill_bytes, 0);
      } else if (kernel.symbol == "spills") {
        EXPECT_EQ(kernel.registers, 64);
        EXPECT_GE(kernel.stack_bytes, (96 - 64) * 4);
        EXPECT_GE(kernel.spill_bytes, kernel.stack_bytes) << "each word is written at least once";
      } else {
        EXPECT_EQ(kernel.symbol, "array");
        EXPECT_EQ(kernel.stack_bytes, 16 * 16);
        EXPECT_EQ(kernel.spill_bytes, 0) << "elements are no spills";
      }
    }
    const CodeFigures figures = read_figures(cubin->data, cubin->kernels).value();
    EXPECT_EQ(figures.registers, 64) << "of the kernel that takes most";
    EXPECT_GT(figures.local_accesses, 64);
    EXPECT_EQ(figures.barriers, 1);
    const auto all = [&](const char* symbol) {
      return count_instructions(cubin->data, symbol).value().all;
    };
    EXPECT_EQ(figures.instructions, all("plain") + all("spills") + all("array"));
  }
}

// A file that is cut off, or one of whose bytes is another, is an error or a result, never a crash.
TEST_F(Cubins, damaged_files_are_errors) {
  const Result<Cubin> cubin = compile_cuda(kStacks, "sm_90a");
  ASSERT_TRUE(cubin.ok()) << cubin.status().message();
  EXPECT_EQ(read_kernels("abc").status().message(), "the cubin is not valid");
  EXPECT_TRUE(make_cubin("abc", "").kernels.empty());
  const std::string& whole = cubin->data;
  for (size_t bytes = 0; bytes < whole.size(); bytes += 61) {
    const auto kernels = read_kernels(std::string_view(whole).substr(0, bytes));
    EXPECT_FALSE(kernels.ok() && bytes <= whole.size() / 2) << bytes;
  }
  for (size_t at = 0; at < whole.size(); at += 7) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x7f);
    (void)read_kernels(damaged);
    (void)read_figures(damaged, cubin->kernels);
  }
}

}  // namespace
}  // namespace hone::backend::gpu
