#include <gtest/gtest.h>

#include <algorithm>

#include "hone/backend/gpu/code_batch_testing.h"
#include "hone/backend/gpu/cubin.h"
#include "hone/backend/gpu/golden_programs_testing.h"
#include "hone/backend/gpu/nvrtc.h"
#include "hone/backend/gpu/print_c.h"
#include "hone/backend/operator_programs_testing.h"
#include "hone/backend/registry.h"
#include "hone/ir/pass_testing.h"
#include "hone/ir/passes/pipeline.h"
#include "hone/ir/random_gpu_program.h"
#include "hone/ir/random_program.h"
#include "hone/runtime/device/code.h"
#include "hone/target/target.h"

// CUDA C is compiled for architectures that need not be there.

namespace hone::backend::gpu {
namespace {

using Cuda = testing::CudaTest;

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
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    add(ir::random_program(seed));
    add(ir::random_gpu_program(seed));
  }
  expect_compiled();
}

using testing::sketch;

TEST_F(Cuda, asynchronous_stores_become_asynchronous_copies) {
  add(sketch("simt_product"));
  ASSERT_EQ(added_, 1);
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const Cubin cubin = expect_compiled({arch});
    const CubinInstructions found = count_instructions(cubin.data, "k0_0").value();
    EXPECT_GE(found.async_copy, 4) << arch;
    EXPECT_EQ(found.global_load, 0) << arch << ": all operands are copied";
    EXPECT_EQ(found.local, 0) << arch;
  }
}

// What instructions a matrix product must have, on both architectures.
struct Expected {
  const char* name;
  const char* type;
  int matrix;        // matrix instructions
  bool from_shared;  // operands come by ldmatrix
  bool copies;       // operands come to shared memory by copies of 4 bytes or more
};
TEST_F(Cuda, matrix_statements_become_matrix_instructions) {
  const Expected expected[] = {
      {"matrix_product", "f16", 16, true, true},   {"matrix_product", "bf16", 16, true, true},
      {"matrix_product", "f32", 32, false, true},  {"flash_attention", "f16", 4, true, false},
      {"flash_attention", "bf16", 4, true, false}, {"flash_attention", "f32", 8, false, true}};
  for (const Expected& e : expected) add(sketch(e.name, e.type));
  ASSERT_EQ(added_, 6);
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const Cubin cubin = expect_compiled({arch});
    ASSERT_FALSE(cubin.data.empty());
    for (size_t i = 0; i < std::size(expected); ++i) {
      SCOPED_TRACE(fmt::format("{} of {} for {}", expected[i].name, expected[i].type, arch));
      const CubinInstructions found =
          count_instructions(cubin.data, fmt::format("k{}_0", i)).value();
      // Loops with a known number of iterations may be unrolled.
      EXPECT_GE(found.matrix, expected[i].matrix);
      EXPECT_EQ(found.matrix % expected[i].matrix, 0);
      EXPECT_EQ(found.load_matrix > 0, expected[i].from_shared);
      EXPECT_EQ(found.async_copy > 0, expected[i].copies);
      EXPECT_EQ(found.local, 0) << "fragments are in registers";
    }
  }
}

// Eight numbers of 16 bits are one load and one store, and are rounded by pairs.
TEST_F(Cuda, vectors_of_half_precision_have_eight_elements) {
  for (const char* type : {"f16", "bf16"}) {
    add(ir::testing::parsed(testing::with_type(R"(program halves {
  input X: f16[8, 1024]
  input Z: f16[8, 1024]
  output Y: f16[8, 1024]
  phase {
    parallel b in 0..8 {
      thread t in 0..128 {
        vectorized v in 0..8 {
          Y[b, t * 8 + v] = f16(max(f32(X[b, t * 8 + v]) + f32(Z[b, t * 8 + v]), 0.0))
        }
      }
    }
  }
}
)",
                                               type)));
  }
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const Cubin cubin = expect_compiled({arch});
    for (const char* symbol : {"k0_0", "k1_0"}) {
      const CubinInstructions found = count_instructions(cubin.data, symbol).value();
      EXPECT_EQ(found.global_load, 2) << arch << symbol;
      EXPECT_EQ(found.global_store, 1) << arch << symbol;
    }
  }
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

TEST_F(Cuda, newer_gpus_run_code_of_an_older_architecture_by_its_ptx) {
  target::Target sm_80 = sm_90a();
  sm_80.gpu().arch = "sm_80";
  sm_80.gpu().capability = 80;
  const Executable made = backend::compile(ir::testing::parsed(kTiles), sm_80).value();
  const std::string& code = made.code.str();
  runtime::DeviceProperties device;
  device.kind = runtime::DeviceKind::kCuda;
  runtime::CodeImage image;
  char message[256];
  device.capability = 86;
  ASSERT_TRUE(runtime::code_choose(code.data(), device, image, message)) << message;
  EXPECT_EQ(image.format, runtime::CodeFormat::kCubin);
  device.capability = 120;
  ASSERT_TRUE(runtime::code_choose(code.data(), device, image, message)) << message;
  EXPECT_EQ(image.format, runtime::CodeFormat::kPtx);
  EXPECT_NE(std::string(static_cast<const char*>(image.data)).find(".target sm_80"),
            std::string::npos);
}

TEST_F(Cuda, inspection_shows_the_kernel_and_counts_its_instructions) {
  const ir::Program program = ir::testing::parsed(kTiles);
  const Executable made = backend::compile(program, sm_90a()).value();
  const Inspection found =
      backend::of(target::Kind::kGpu).value()->inspect(program, made, sm_90a()).value();
  ASSERT_EQ(found.loops.size(), 1);
  const InnerLoop& loop = found.loops[0];
  ASSERT_GT(loop.text.size(), 10);
  EXPECT_TRUE(loop.text[0].starts_with(fmt::format("// {} registers", loop.vector_registers)));
  EXPECT_EQ(loop.text[2], "extern \"C\" __global__ void __launch_bounds__(256)");
  EXPECT_EQ(loop.text.back(), "}");
  EXPECT_EQ(found.registers_needed, loop.vector_registers);
  EXPECT_GE(loop.mix.fma, 32);
  EXPECT_GT(loop.mix.load, 64);
  EXPECT_EQ(loop.spills, 0);
}

// A thread keeps so many sums while it reads its input.
ir::Program sums_of(int count) {
  return ir::testing::parsed(fmt::format(R"(program sums {{
  input X: f32[64, 4096]
  output Y: f32[{0}, 4096, 256]
  phase {{
    parallel b in 0..4096 {{
      thread t in 0..256 {{
        alloc register sums: f32[{0}] {{
          unrolled i in 0..{0} {{ sums[i] = f32(t) }}
          for k in 0..64 {{
            unrolled i in 0..{0} {{ sums[i] = sums[i] * X[k, b] + f32(t + i) }}
          }}
          unrolled i in 0..{0} {{ Y[i, b, t] = sums[i] }}
        }}
      }}
    }}
  }}
}}
)",
                                         count));
}

// Some of these kernels need only a few registers too many for one more block on an SM. The
// compiler is told to keep to fewer registers for these, which puts nothing on the stack, and
// inspection shows it.
TEST_F(Cuda, a_few_registers_are_saved_for_one_more_block_of_an_sm) {
  const target::Target h100 = *target::find("cuda-sm_90a");
  int bounded = 0;
  for (int count = 52; count <= 76; count += 4) {
    SCOPED_TRACE(count);
    const ir::Program program = sums_of(count);
    const Result<Executable> made = backend::compile(program, h100);
    ASSERT_TRUE(made.ok()) << made.status().message();
    const CodeNotes notes = read_notes(made->code.str()).value();
    ASSERT_EQ(notes.kernels.size(), 1);
    const KernelNote& note = notes.kernels[0];
    ASSERT_TRUE(made->figures.has_value());
    EXPECT_EQ(made->figures->registers, note.registers);
    EXPECT_EQ(made->figures->spill_bytes, 0);
    if (note.blocks == 0) continue;
    ++bounded;
    EXPECT_LE(note.registers * 256 * note.blocks, 65536);
    EXPECT_EQ(note.stack_bytes, 0);
    const Inspection found =
        backend::of(target::Kind::kGpu).value()->inspect(program, *made, h100).value();
    const auto& text = found.loops[0].text;
    EXPECT_NE(std::find(text.begin(), text.end(),
                        fmt::format("extern \"C\" __global__ void __launch_bounds__(256, {})",
                                    note.blocks)),
              text.end());
  }
  EXPECT_GT(bounded, 0);
}

TEST_F(Cuda, an_architecture_that_the_compiler_does_not_know_is_an_error) {
  const Result<Cubin> cubin = compile_cuda("", "sm_1");
  ASSERT_FALSE(cubin.ok());
  EXPECT_NE(cubin.status().message().find("CUDA's compiler failed for sm_1: "), std::string::npos)
      << cubin.status().message();
}

}  // namespace
}  // namespace hone::backend::gpu
