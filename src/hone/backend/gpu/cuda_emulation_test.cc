#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "hone/backend/gpu/c_functions.h"
#include "hone/backend/gpu/cuda_emulation_testing.h"
#include "hone/backend/gpu/emulated_ptx_testing.h"
#include "hone/backend/gpu/emulated_run_testing.h"
#include "hone/backend/gpu/golden_programs_testing.h"
#include "hone/base/rng.h"

// The emulation itself: conversions of the PTX ISA, and that it finds what is wrong with a kernel.
// And printed programs with matrix instructions and asynchronous copies.

namespace hone::backend::gpu {

emulated::Services* emulated::services = nullptr;  // conversions need none

namespace {

TEST(cuda_emulation, assembler_becomes_calls_with_operands_in_their_order) {
  const Result<std::string> text = testing::without_assembler(
      "uint f(float x) {\n  asm volatile(\"cvt.rn.f16x2.f32 %0, %2, %1;\" : \"=r\"(a[b(1)]) : "
      "\"f\"(x), \"f\"(y) : \"memory\");\n  asm(\"cp.async.wait_group %0;\" : : \"n\"(3));\n  "
      "asm(\"stop {%0, %0}, [%1], 4;\" : \"+f\"(d) : \"l\"((f)(p)));\n  asmodeus(2);\n");
  ASSERT_TRUE(text.ok()) << text.status().message();
  const std::string ptx = "hone::backend::gpu::emulated::ptx::";
  EXPECT_EQ(*text, fmt::format("uint f(float x) {{\n  {0}cvt_rn_f16x2_f32({0}r(a[b(1)]), {0}f(y), "
                               "{0}f(x));\n  {0}cp_async_wait_group({0}n(3));\n  {0}stop({0}f(d), "
                               "{0}f(d), {0}l((f)(p)), 4);\n  asmodeus(2);\n",
                               ptx));
  for (const char* wrong : {"asm(\"nop; nop;\");", "asm(\"mov %1;\" : \"=r\"(x));", "asm(nop)"})
    EXPECT_FALSE(testing::without_assembler(wrong).ok()) << wrong;
}

// ---- conversions, beside those that the interpreter computes with ----

double value_of(DType type, uint16_t bits) {
  Tensor t(type, {1});
  std::memcpy(t.data(), &bits, sizeof(bits));
  return t.at(0);
}
uint16_t bits_of(DType type, float x) {
  Tensor t(type, {1});
  t.set(0, static_cast<double>(x));
  uint16_t bits = 0;
  std::memcpy(&bits, t.data(), sizeof(bits));
  return bits;
}

TEST(cuda_emulation, conversions_of_16_bits) {
  namespace ptx = emulated::ptx;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const double f16 = value_of(DType::kF16, half), bf16 = value_of(DType::kBF16, half);
    const auto found_f16 = static_cast<double>(ptx::float_of_f16(half));
    const auto found_bf16 = static_cast<double>(ptx::float_of_bf16(half));
    ASSERT_TRUE(found_f16 == f16 || (std::isnan(found_f16) && std::isnan(f16))) << bits;
    ASSERT_TRUE(found_bf16 == bf16 || (std::isnan(found_bf16) && std::isnan(bf16))) << bits;
  }
  Rng rng(1);
  for (int i = 0; i < 200'000; ++i) {
    auto bits = static_cast<uint32_t>(rng.next());
    if (i % 4 != 0) bits = (bits & 0x8fffffff) | 0x30000000;  // most of them fit in f16
    if (i % 8 == 1) bits &= 0xfffff000;                       // many of them are ties
    const auto x = std::bit_cast<float>(bits);
    if (std::isnan(x)) continue;
    ASSERT_EQ(ptx::f16_of_float(x), bits_of(DType::kF16, x)) << x;
    ASSERT_EQ(ptx::bf16_of_float(x), bits_of(DType::kBF16, x)) << x;
  }
}

TEST(cuda_emulation, tf32_is_rounded_away_from_zero) {
  const auto rounded = [](float x) {
    unsigned bits = 0;
    emulated::ptx::cvt_rna_tf32_f32(bits, x);
    return emulated::ptx::float_of_tf32(bits);
  };
  EXPECT_EQ(rounded(1.0f), 1.0f);
  EXPECT_EQ(rounded(1.0f + 0x1p-11f), 1.0f + 0x1p-10f);
  EXPECT_EQ(rounded(-1.0f - 0x1p-11f), -1.0f - 0x1p-10f);
  EXPECT_EQ(rounded(1.0f + 0x1p-11f - 0x1p-23f), 1.0f);
  EXPECT_EQ(rounded(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(rounded(NAN)));
}

// ---- what is wrong with a kernel ----

struct Wrong {
  const char* name;
  const char* body;   // of a kernel of 64 threads that gets X and Y, which have 64 elements
  const char* error;  // a part of what is said, or "" for a kernel that is right
};
constexpr Wrong kWrongs[] = {
    {"right", "Y[t] = X[t] + 1.0f;", ""},
    {"misaligned", "if (t < 2) *(float4*)&Y[t * 2] = make_float4(0, 0, 0, 0);",
     "thread 1: a misaligned vector in line"},
    {"reads_behind", "Y[t] = X[t + 1];", "thread 63: a read of 4 bytes at byte 256 of X"},
    {"reads_before", "Y[t] = X[t - 1];", "thread 0: a read of 4 bytes at byte -4 of X"},
    {"writes_behind", "*(float2*)&Y[t + t % 2 * 63] = make_float2(0, 0);",
     "a write of 8 bytes at byte 256 of Y"},
    {"writes_input", "((float*)X)[t] = 0;", "a write to X, which is only read"},
    {"array_index", "__shared__ float s[8][4]; s[t / 8][t % 5] = 0; Y[t] = 0;",
     "thread 4: an index beyond the extent of its array in line"},
    {"shared", "__shared__ float s[64]; s[t] = X[t]; __syncthreads(); Y[t] = s[63 - t];", ""},
    {"no_barrier", "__shared__ float s[64]; s[t] = X[t]; Y[t] = s[63 - t];",
     "shared memory that thread"},
    {"writes_too_soon",
     "__shared__ float s[64]; s[t] = X[t]; __syncthreads(); Y[t] = s[63 - t]; s[t] = 0;",
     "a race: "},
    {"warp", "__shared__ float s[64]; s[t] = X[t]; __syncwarp(); Y[t] = s[t ^ 1];", ""},
    {"other_warp", "__shared__ float s[64]; s[t] = X[t]; __syncwarp(); Y[t] = s[63 - t];",
     "shared memory that thread"},
    {"few_at_barrier", "if (t < 32) __syncthreads(); Y[t] = 0;",
     "thread 0 waits at the barrier of line"},
    {"two_barriers", "if (t < 32) {\n __syncthreads();\n} else {\n __syncthreads();\n} Y[t] = 0;",
     "thread 0 waits at the barrier of line"},
    {"shuffle", "Y[t] = __shfl_xor_sync(15u << (t & 28), X[t], 2);", ""},
    {"few_lanes", "if (t % 4 != 3) Y[t] = __shfl_xor_sync(15u << (t & 28), X[t], 1);",
     "waits for the warp in line"},
    {"other_mask", "Y[t] = __shfl_xor_sync(3u, X[t], 1);", "a lane that its mask lacks"},
    {"beyond_mask", "Y[t] = __shfl_xor_sync(3u << (t & 30), X[t], 2);",
     "a shuffle from a lane that is not in its mask"},
    {"copy",
     "__shared__ float s[64]; copy_async_4(&s[t], &X[t], t < 60); commit_copies(); "
     "wait_copies<0>(); Y[t] = s[t];",
     ""},
    {"three_copies",
     "__shared__ float s[64][3]; for (int i = 0; i < 3; ++i) { copy_async_4(&s[t][i], &X[i], i != "
     "1); commit_copies(); } wait_copies<1>(); if (t == 0) for (int i = 0; i < 3; ++i) Y[i] = "
     "s[t][i]; wait_copies<0>();",
     ""},
    {"copy_without_barrier",
     "__shared__ float s[64]; copy_async_4(&s[t], &X[t], true); commit_copies(); "
     "wait_copies<0>(); Y[t] = s[63 - t];",
     "shared memory that thread"},
    {"barrier_before_wait",
     "__shared__ float s[64]; copy_async_4(&s[t], &X[t], true); commit_copies(); "
     "__syncthreads(); wait_copies<0>(); Y[t] = s[63 - t];",
     "shared memory that thread"},
    {"nothing_waits",
     "__shared__ float s[64]; copy_async_4(&s[t], &X[t], true); commit_copies(); Y[t] = 0;",
     "the thread ends before asynchronous copies have arrived"},
    {"misaligned_copy",
     "__shared__ __align__(16) float s[66]; if (t == 1) copy_async_8(&s[t], &X[0], true);",
     "thread 1: cp.async of addresses that are no multiples of its size"},
    {"misaligned_rows",
     "__shared__ __align__(16) ushort s[64][9]; uint r[4]; load_matrix_4(r, &s[t][0]);",
     "thread 1: ldmatrix of an address that is no multiple of 16"},
    {"no_shared_memory", "uint r[2]; load_matrix_2(r, (const ushort*)X);",
     "no address of shared memory"},
};

const char* const kCopyOfOnes =
    "program p {\n  input X: f32[64]\n  output Y: f32[64]\n  phase {\n"
    "    thread t in 0..64 { Y[t] = X[t] }\n  }\n}\n";

// Returns all these kernels, which are compiled once.
const Result<testing::CudaEmulation>& wrongs() {
  static const Result<testing::CudaEmulation> made = [] {
    CFunctions functions(Dialect::kCuda);
    for (const char* name : {"copy_async_4", "copy_async_8", "commit_copies", "wait_copies",
                             "load_matrix_2", "load_matrix_4"})
      functions.use(name);
    std::string text = "#define FUNCTION static inline\n" + functions.definitions();
    std::vector<std::string> symbols;
    for (const Wrong& wrong : kWrongs) {
      symbols.emplace_back(wrong.name);
      text += fmt::format(
          "extern \"C\" __global__ void {}(const float* X, float* Y, long long first_tile) {{\n"
          "const int t = (int)threadIdx.x;\n{}\n}}\n",
          wrong.name, wrong.body);
    }
    return testing::CudaEmulation::compile(text, symbols);
  }();
  return made;
}

TEST(cuda_emulation, finds_what_is_wrong_with_a_kernel) {
  ASSERT_TRUE(wrongs().ok()) << wrongs().status().message();
  const ir::Program program = ir::testing::parsed(kCopyOfOnes);
  for (const Wrong& wrong : kWrongs) {
    SCOPED_TRACE(wrong.name);
    std::vector<Tensor> args = ir::random_arguments(program, 1);
    const Status ran = wrongs()->run(program, {.symbol = wrong.name, .threads = 64}, args, {});
    EXPECT_EQ(ran.ok(), std::string_view(wrong.error).empty()) << ran.message();
    EXPECT_NE(ran.message().find(wrong.error), std::string::npos) << ran.message();
  }
}

// A copy is there when it was waited for, and may be there before.
TEST(cuda_emulation, copies_arrive_at_once_or_as_late_as_they_may) {
  ASSERT_TRUE(wrongs().ok()) << wrongs().status().message();
  const ir::Program program = ir::testing::parsed(kCopyOfOnes);
  for (const bool late : {false, true}) {
    std::vector<Tensor> args = ir::random_arguments(program, 1);
    const Status ran =
        wrongs()->run(program, {.symbol = "three_copies"}, args, {.late_copies = late});
    ASSERT_TRUE(ran.ok()) << ran.message();
    EXPECT_EQ(args[1].at(0), args[0].at(0));
    EXPECT_EQ(args[1].at(1), 0);
    EXPECT_EQ(std::isnan(args[1].at(2)), late);
  }
}

// ---- faults in printed code ----

struct Fault {
  const char* program;
  const char* from;  // the first occurrence is replaced
  const char* to;
};
constexpr Fault kFaults[] = {
    {"matrix_product", "", ""},  // none
    {"matrix_product", "__syncthreads();", ""},
    {"matrix_product", "wait_copies<1>();\n    __syncthreads();", "wait_copies<1>();"},
    {"matrix_product", "wait_copies<1>", "wait_copies<2>"},
    {"matrix_product", "commit_copies();\n  for", "for"},
    {"matrix_product", "load_matrix_4_transposed(", "load_matrix_4("},
    {"matrix_product", "m * 16 + lane % 16", "m * 16 + lane % 8"},
    {"matrix_product", "lane / 16 * 8", "lane / 16 * 4"},
    {"matrix_product", "lane / 16 * 8", "lane / 8 % 2 * 8"},
    {"matrix_product", "b_1[0], b_1[1]", "b_1[1], b_1[0]"},
    {"matrix_product", "b[k % 2]", "b[(k + 1) % 2]"},
    {"matrix_product", "lane % 4 * 2", "lane % 2 * 2"},
    {"flash_attention", "", ""},
    {"flash_attention", "__syncthreads();", ""},
    {"flash_attention", "quad_max(", "("},
    {"flash_attention", "quad_sum(", "("},
    {"flash_attention", "a[1] = two_halves(p[1][0]", "a[1] = two_halves(p[0][0]"},
    {"flash_attention", "load_matrix_2_transposed(", "load_matrix_2("},
};

// Returns the text with a fault in it.
std::string with_fault(std::string text, const Fault& fault) {
  const size_t at = text.find(fault.from);
  EXPECT_NE(at, std::string::npos) << fault.from << "\n" << text;
  if (at != std::string::npos) text.replace(at, std::string_view(fault.from).size(), fault.to);
  return text;
}

// A wrong lane, register, stage or wait in the text of a kernel does not stay unseen.
TEST(cuda_emulation, finds_faults_in_printed_code) {
  std::string text;
  std::vector<std::string> symbols;
  for (const Fault& fault : kFaults) {
    const std::string symbol = fmt::format("fault{}", symbols.size());
    const Result<Source> source =
        print_c(testing::sketch(fault.program), Dialect::kCuda, {.symbol_prefix = symbol});
    ASSERT_TRUE(source.ok()) << source.status().message();
    const size_t kernel = source->text.find("extern \"C\" __global__");
    text += fmt::format("namespace {} {{\n{}{}}}\nusing {}::{}_0;\n", symbol,
                        source->text.substr(0, kernel),
                        with_fault(source->text.substr(kernel), fault), symbol, symbol);
    symbols.push_back(symbol + "_0");
  }
  const Result<testing::CudaEmulation> emulation = testing::CudaEmulation::compile(text, symbols);
  ASSERT_TRUE(emulation.ok()) << emulation.status().message();
  for (size_t i = 0; i < symbols.size(); ++i) {
    const Fault& fault = kFaults[i];
    SCOPED_TRACE(fmt::format("{}: {} becomes {}", fault.program, fault.from, fault.to));
    const ir::Program program = testing::sketch(fault.program);
    const Kernel kernel = {.symbol = symbols[i], .tiles = 2, .threads = 64};
    std::vector<Tensor> expected = ir::random_arguments(program, 1);
    std::vector<Tensor> found = ir::random_arguments(program, 1);
    ASSERT_TRUE(ir::run(program, expected).ok());
    const Status ran = emulation->run(program, kernel, found, {});
    const std::string wrong =
        ran.ok() ? backend::testing::difference(program, expected, found, 2e-3) : ran.message();
    EXPECT_EQ(wrong.empty(), std::string_view(fault.from).empty()) << wrong;
  }
}

using EmulatedCuda = testing::EmulatedCudaTest;

// Products by matrix instructions, attention with a running softmax, tiles that are copied
// asynchronously.
TEST_F(EmulatedCuda, kernels_that_are_written_by_hand) {
  for (const char* type : {"f16", "f32"}) {
    add(testing::sketch("matrix_product", type), 1, 2e-3);
    add(testing::sketch("flash_attention", type), 1, 2e-3);
  }
  add(testing::sketch("matrix_product", "bf16"), 1, 1e-2);
  add(testing::sketch("simt_product"), 1, 1e-5);
  expect_right();
}

// Loops over parts of tiles, and single rows and columns, which loops of one iteration leave.
const char* const kParts = R"(program parts {
  input X: f32[2, 16, 24]
  output Y: f32[2, 13, 11]
  output R: f32[2, 24]
  output C: f32[2, 16]
  output E: f32[2]
  output M: f32[2]
  phase {
    alloc fragment d: f32[2, 16, 24] {
      alloc fragment m: f32[2, 16] {
        warp w in 0..2 {
          for i in 0..16 { for j in 0..24 { d[w, i, j] = X[w, i, j] } }
          for i in 0..13 { for j in 0..11 { Y[w, i, j] = d[w, i, j] } }
          for j in 0..24 { R[w, j] = d[w, 10, j] }
          for t in 0..2 { for i in 0..8 { C[w, t * 8 + i] = d[w, t * 8 + i, 21] } }
          E[w] = d[w, 9, 14]
          m[w, 5] = 0.0
          for j in 0..19 { m[w, 5] = max(m[w, 5], d[w, 5, j]) }
          M[w] = m[w, 5]
        }
      }
    }
  }
}
)";

// Each lane has a term of a sum and of a maximum; all have what the warp makes of them.
const char* const kLaneSums = R"(program lane_sums {
  input X: f32[3, 32]
  output Y: f32[3, 32]
  output M: f32[3]
  phase {
    alloc fragment x: f32[3, 32, 2] {
      alloc fragment s: f32[3, 1] {
        alloc fragment m: f32[3] {
          warp w in 0..3 { lane l in 0..32 {
            x[w, l, 0] = X[w, l]
            x[w, l, 1] = X[w, 31 - l]
          } }
          warp w in 0..3 {
            m[w] = -inf
            for k in 0..32 { m[w] = max(m[w], x[w, k, 1]) }
            M[w] = m[w]
            s[w, 0] = 1.0
            if 0.0 < X[w, 0] {
              for k in 0..32 { s[w, 0] = s[w, 0] + (x[w, k, 0] - m[w]) * X[w, k] }
            }
          }
          warp w in 0..3 { lane l in 0..32 { if l % 3 < 2 { Y[w, l] = x[w, l, 1] + s[w, 0] } } }
        }
      }
    }
  }
}
)";

TEST_F(EmulatedCuda, lanes_exchange_what_a_warp_reduces) {
  const ir::Program program = ir::testing::parsed(kLaneSums);
  add(program, 1, 1e-5);
  add(program, 2, 1e-5);
  expect_right();
  const Result<Source> source = print_c(program, Dialect::kCuda);
  ASSERT_TRUE(source.ok()) << source.status().message();
  for (const char* call : {"s_part = warp_sum(s_part);", "m_part = warp_max(m_part);",
                           "__shfl_xor_sync(0xffffffffu, x, by)"})
    EXPECT_NE(source->text.find(call), std::string::npos) << source->text;
  EXPECT_FALSE(print_c(program, Dialect::kOpenCl).ok());
}

// Lanes exchange nothing else.
TEST_F(EmulatedCuda, what_lanes_do_not_exchange_is_an_error) {
  const auto error_of = [](const std::string& from, const std::string& to) {
    std::string text = kLaneSums;
    text.replace(text.find(from), from.size(), to);
    return print_c(ir::testing::parsed(text), Dialect::kCuda).status().message();
  };
  EXPECT_EQ(error_of("m[w] = max(m[w], x[w, k, 1])", "m[w] = max(m[w], x[w, 31 - k, 1])"),
            "there is no code for the element 31 - lane_ of x, which another lane has");
  EXPECT_EQ(error_of("for k in 0..32 { m[w]", "for k in 0..16 { m[w]"),
            "there is no code for the loop k over what lanes have, which is no sum, maximum or "
            "minimum of a warp");
}

TEST_F(EmulatedCuda, parts_of_tiles_are_tests_in_whole_tiles) {
  add(ir::testing::parsed(kParts), 1, 0);
  expect_right();
}

}  // namespace
}  // namespace hone::backend::gpu
