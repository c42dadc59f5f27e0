#include <gtest/gtest.h>

#include "hone/backend/gpu/golden_programs_testing.h"
#include "hone/backend/gpu/nvrtc.h"
#include "hone/backend/gpu/print_c.h"
#include "hone/backend/operator_programs_testing.h"
#include "hone/backend/registry.h"
#include "hone/ir/pass_testing.h"
#include "hone/ir/random_program.h"
#include "hone/runtime/device/code.h"

// CUDA C is compiled for architectures that need not be there.

namespace hone::backend::gpu {
namespace {

constexpr const char* kArchitectures[] = {"sm_80", "sm_90a"};

class Cuda : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Status status = find_nvrtc(); !status.ok())
      GTEST_SKIP() << "skipped: " << status.message();
  }
  void add(const ir::Program& program) {
    PrintOptions options;
    options.symbol_prefix = fmt::format("k{}", added_);
    const auto kernels = printer_.add(program, options);
    if (!kernels.ok() && kernels.status().message().find("no code for") != std::string::npos)
      return;
    ASSERT_TRUE(kernels.ok()) << kernels.status().message();
    ++added_;
    kernels_ += kernels->size();
  }
  void expect_compiled() {
    for (const char* arch : kArchitectures) {
      const Result<Cubin> cubin = compile_cuda(printer_.text(), arch);
      ASSERT_TRUE(cubin.ok()) << cubin.status().message() << "\n" << printer_.text();
      EXPECT_TRUE(
          cubin->data.starts_with("\x7f"
                                  "ELF"));
      EXPECT_EQ(cubin->kernels.size(), kernels_);
    }
  }
  int added_ = 0;

 private:
  SourcePrinter printer_ = SourcePrinter(Dialect::kCuda);
  size_t kernels_ = 0;
};

TEST_F(Cuda, all_goldens_of_passes_are_compiled) {
  for (const testing::GoldenProgram& golden : testing::golden_programs()) {
    SCOPED_TRACE(golden.origin);
    add(golden.program);
  }
  EXPECT_GT(added_, 50);
  expect_compiled();
}

TEST_F(Cuda, operators_of_every_type_are_compiled) {
  for (const auto& p : backend::testing::operator_programs(3, ir::ForKind::kSerial)) add(p.program);
  for (const auto& p : backend::testing::cast_programs(3, ir::ForKind::kSerial)) add(p.program);
  for (const auto& p : backend::testing::bit_programs(3, ir::ForKind::kSerial)) add(p.program);
  expect_compiled();
}

TEST_F(Cuda, random_programs_are_compiled) {
  for (uint64_t seed = 1; seed <= 12; ++seed) add(ir::random_program(seed));
  expect_compiled();
}

const char* const kTiles = R"(program tiles {
  input X: f32[4096, 64]
  output Y: f32[4096]
  phase {
    parallel b in 0..16 {
      alloc shared s: f32[64, 256] {
        thread t in 0..256 { for i in 0..64 { s[i, t] = X[b * 256 + t, i] } }
        barrier
        thread t in 0..256 {
          alloc register sums: f32[64] {
            unrolled i in 0..64 { sums[i] = s[i, 255 - t] * s[63 - i, t] }
            Y[b * 256 + t] = 0.0
            unrolled i in 0..64 { Y[b * 256 + t] = Y[b * 256 + t] + sums[i] * sums[63 - i] }
          }
        }
      }
    }
  }
}
)";

target::Target sm_90a() {
  target::Gpu gpu;
  gpu.arch = "sm_90a";
  gpu.capability = 90;
  gpu.shared_bytes_opt_in = 227 << 10;
  return {.name = "cuda-sm_90a", .part = gpu};
}

TEST_F(Cuda, an_executable_has_code_of_one_architecture_and_what_is_known_of_it) {
  const ir::Program program = ir::testing::parsed(kTiles);
  const Result<Executable> made = backend::compile(program, sm_90a());
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made->entries[0].threads, 256);
  EXPECT_EQ(made->entries[0].shared_bytes, 64 << 10);
  const std::string& code = made->code.str();
  ASSERT_EQ(runtime::code_check(code.data(), code.size()), nullptr);
  const runtime::CodeImage image = runtime::code_image(code.data(), 0);
  EXPECT_EQ(image.format, runtime::CodeFormat::kCubin);
  EXPECT_EQ(image.capability, 90);
  EXPECT_TRUE(image.specific);
  const CodeNotes notes = read_notes(code).value();
  ASSERT_EQ(notes.kernels.size(), 1);
  EXPECT_EQ(notes.kernels[0].symbol, made->entries[0].symbol);
  EXPECT_GT(notes.kernels[0].registers, 32);
  EXPECT_EQ(notes.kernels[0].spill_bytes, 0);
  EXPECT_EQ(notes.kernels[0].stack_bytes, 0) << "the sums are in registers";
}

TEST_F(Cuda, an_architecture_that_the_compiler_does_not_know_is_an_error) {
  const Result<Cubin> cubin = compile_cuda("", "sm_1");
  ASSERT_FALSE(cubin.ok());
  EXPECT_NE(cubin.status().message().find("CUDA's compiler failed for sm_1: "), std::string::npos)
      << cubin.status().message();
}

TEST(read_ptxas_log, finds_the_resources_of_each_kernel) {
  const std::vector<KernelNote> notes = read_ptxas_log(R"(ptxas info    : 36 bytes gmem
ptxas info    : Compiling entry function 'a_0' for 'sm_90a'
ptxas info    : Function properties for a_0
ptxas         .     160 bytes stack frame, 24 bytes spill stores, 28 bytes spill loads
ptxas info    : Used 64 registers, used 0 barriers, 160 bytes cumulative stack size
ptxas info    : Compiling entry function 'b_0' for 'sm_90a'
ptxas info    : Function properties for b_0
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 61 registers, used 1 barriers, 4096 bytes smem
)");
  ASSERT_EQ(notes.size(), 2);
  EXPECT_EQ(notes[0].symbol, "a_0");
  EXPECT_EQ(notes[0].registers, 64);
  EXPECT_EQ(notes[0].stack_bytes, 160);
  EXPECT_EQ(notes[0].spill_bytes, 24);
  EXPECT_EQ(notes[0].shared_bytes, 0);
  EXPECT_EQ(notes[1].symbol, "b_0");
  EXPECT_EQ(notes[1].registers, 61);
  EXPECT_EQ(notes[1].shared_bytes, 4096);
}

}  // namespace
}  // namespace hone::backend::gpu
