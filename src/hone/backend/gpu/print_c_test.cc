#include "hone/backend/gpu/print_c.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "hone/ir/pass_testing.h"

namespace hone::backend::gpu {
namespace {

using ir::testing::parsed;

// A program with one phase.
ir::Program of_phase(const std::string& params, const std::string& body) {
  return parsed("program p {\n" + params + "  phase {\n" + body + "\n  }\n}\n");
}
std::string text_of(const ir::Program& program, Dialect dialect = Dialect::kOpenCl) {
  const Result<Source> source = print_c(program, dialect);
  EXPECT_TRUE(source.ok()) << source.status().message();
  return source.ok() ? source->text : "";
}
void expect_unsupported(const ir::Program& program, const std::string& message,
                        const PrintOptions& options = {}) {
  const Result<Source> source = print_c(program, Dialect::kOpenCl, options);
  ASSERT_FALSE(source.ok());
  EXPECT_EQ(source.status().code(), Code::kUnsupported);
  EXPECT_EQ(source.status().message(), message);
}
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

PrintOptions prefix(std::string symbols) {
  PrintOptions options;
  options.symbol_prefix = std::move(symbols);
  return options;
}

const char* const kXandY = "  input X: f32[64]\n  output Y: f32[64]\n";

TEST(print_c, one_kernel_for_each_phase_that_runs_with_the_model) {
  const ir::Program program = parsed(R"(program p {
  constant W: f32[64]
  packed P: f32[64]
  input X: f32[64]
  workspace T: f32[4, 64]
  output Y: f32[64]
  phase prepare { for i in 0..64 { P[i] = W[63 - i] } }
  phase { parallel b in 0..4 { thread t in 0..64 { T[b, t] = X[t] * P[t] } } }
  phase { thread t in 0..16 { for i in 0..4 { Y[i * 16 + t] = T[i, t] + T[0, i] } } }
}
)");
  PrintOptions options = prefix("mine");
  options.comment = "steps\\\nmore";
  const Result<Source> source = print_c(program, Dialect::kCuda, options);
  ASSERT_TRUE(source.ok());
  ASSERT_EQ(source->kernels.size(), 2);
  EXPECT_EQ(source->kernels[0].symbol, "mine_1");
  EXPECT_EQ(source->kernels[0].phase, 1);
  EXPECT_EQ(source->kernels[0].tiles, 4);
  EXPECT_EQ(source->kernels[0].threads, 64);
  EXPECT_EQ(source->kernels[1].symbol, "mine_2");
  EXPECT_EQ(source->kernels[1].tiles, 1);
  EXPECT_EQ(source->kernels[1].threads, 16);
  EXPECT_FALSE(has(source->text, "mine_0"));
  // A line that ends in a backslash would continue the comment.
  EXPECT_TRUE(has(source->text, "// steps\n// more\n")) << source->text;
  // What a kernel does not touch has no name in it.
  EXPECT_TRUE(has(source->text,
                  "mine_1(\n    char*,\n    const float* __restrict__ P,\n    const float* "
                  "__restrict__ X,\n    float* __restrict__ T,\n    char*,\n    long long "
                  "first_tile) {"))
      << source->text;
}

TEST(print_c, names_that_mean_something_in_c_are_changed) {
  const std::string text = text_of(of_phase(
      "  input float4: f32[4]\n  input a.b: f32[4]\n  input asm: f32[4]\n"
      "  output kernel: f32[4]\n",
      "for long in 0..4 { kernel[long] = float4[long] + a.b[long] + exp(asm[3 - long]) }"));
  for (const char* name : {"float4_1 =", "a_b =", "asm_1 =", "kernel_1 =", "int long_1 ="})
    EXPECT_TRUE(has(text, name)) << name << "\n" << text;
}

// A table stands at file scope, where it would declare a function of the dialect again.
TEST(print_c, names_of_macros_and_tables_clash_with_nothing) {
  const std::string text = text_of(of_phase(
      "  constant dot: f32[2] = {1.0, 2.0}\n  input M_PI: f32[4]\n  output FLT_MAX: f32[4]\n",
      "for i in 0..4 { FLT_MAX[i] = M_PI[i] * dot[i % 2] }"));
  EXPECT_TRUE(has(text, "__constant float known_dot[2]")) << text;
  EXPECT_TRUE(has(text, "vFLT_MAX[i] = vM_PI[i] * known_dot[i % 2];")) << text;
}

TEST(print_c, indices_are_int_where_that_is_proved) {
  const std::string text =
      text_of(of_phase("  input X: f32[4000000000]\n  input N: i64[1]\n  output Y: f32[4]\n",
                       "for i in 0..4 { Y[i] = X[i * 1000000000] + X[N[0]] }\n"
                       "for k in 0..+N[0] { Y[k] = X[k * 2] }"));
  EXPECT_TRUE(has(text, "for (int i = 0; i < 4; ++i)")) << text;
  EXPECT_TRUE(has(text, "X[(long)i * 1000000000]")) << text;
  EXPECT_TRUE(has(text, "for (long k = 0; k < k_end; ++k)")) << text;
}

TEST(print_c, more_than_48_KiB_of_shared_memory_are_given_by_a_launch_of_cuda) {
  const auto program = [](int rows) {
    return of_phase(kXandY,
                    fmt::format("alloc shared s: f32[{}, 64] {{ alloc shared n: i64[] {{\n"
                                "thread t in 0..64 {{ s[0, t] = X[t]  if t == 0 {{ n[] = 3 }} }}\n"
                                "barrier\n"
                                "thread t in 0..64 {{ Y[t] = s[0, 63 - t] + f32(n[]) }} }} }}",
                                rows));
  };
  const Result<Source> small = print_c(program(4), Dialect::kCuda);
  ASSERT_TRUE(small.ok());
  EXPECT_EQ(small->kernels[0].shared_bytes, 4 * 64 * 4 + 16);
  EXPECT_EQ(small->kernels[0].dynamic_bytes, 0);
  EXPECT_TRUE(has(small->text, "__shared__ __align__(16) float s[4][64];"));
  const Result<Source> large = print_c(program(300), Dialect::kCuda);
  ASSERT_TRUE(large.ok());
  EXPECT_EQ(large->kernels[0].dynamic_bytes, 300 * 64 * 4 + 16);
  EXPECT_TRUE(has(large->text, "float (&s)[300][64] = *(float (*)[300][64])(shared_memory + 0);"));
  EXPECT_TRUE(has(large->text, "long (&n) = *(long (*))(shared_memory + 76800);")) << large->text;
}

TEST(print_c, a_reference_to_dynamic_memory_has_the_whole_type) {
  const Result<Source> source =
      print_c(of_phase(kXandY,
                       "alloc shared c: i8[1024, 64] {\n"
                       "thread t in 0..64 { c[0, t] = i8(X[t]) }\nbarrier\n"
                       "thread t in 0..64 { Y[t] = f32(c[0, 63 - t]) } }"),
              Dialect::kCuda);
  ASSERT_TRUE(source.ok());
  EXPECT_TRUE(has(source->text,
                  "signed char (&c)[1024][64] = *(signed char (*)[1024][64])(shared_memory + 0);"))
      << source->text;
}

// A pass may copy a loop with the allocation in it.
TEST(print_c, shared_memory_that_is_allocated_in_several_places_counts_once) {
  ir::Program program = of_phase(kXandY,
                                 "alloc shared s: f32[64] { thread t in 0..64 { s[t] = X[t] }\n"
                                 "barrier  thread t in 0..64 { Y[t] = s[63 - t] }  barrier }");
  const ir::Stmt body = program.phases[0].body;
  program.phases[0].body = ir::make_block({body, body});
  const Result<Source> source = print_c(program, Dialect::kOpenCl);
  ASSERT_TRUE(source.ok()) << source.status().message();
  EXPECT_EQ(source->kernels[0].shared_bytes, 256);
  EXPECT_EQ(source->text.find("__local float s"), source->text.rfind("__local float s"));
}

TEST(print_c, memory_that_an_output_may_share_with_an_input_is_not_restricted) {
  const std::string text = text_of(of_phase(std::string(kXandY) + "  input Z: f32[64]\n",
                                            "for i in 0..64 { Y[i] = X[i] + Z[63 - i] }"),
                                   Dialect::kCuda);
  EXPECT_TRUE(
      has(text, "(const float* X, float* Y, const float* __restrict__ Z, long long first_tile)"))
      << text;
}

TEST(print_c, what_cannot_be_printed_is_one_error) {
  expect_unsupported(of_phase(kXandY, "extern f(X, Y)"), "there is no code for functions");
  expect_unsupported(of_phase(kXandY,
                              "alloc fragment d: f32[16, 8] { alloc shared a: f32[16, 8] {\n"
                              "thread t in 0..32 { a[t // 8, t % 8] = X[t] }\n"
                              "matrix d[0 : 16, 0 : 8] += a[0 : 16, 0 : 8] * a[0 : 8, 0 : 8] } }"),
                     "there is no code for matrix instructions in OpenCL C");
  expect_unsupported(of_phase(kXandY, "alloc stack s: f32[70000] { s[0] = X[0]  Y[0] = s[0] }"),
                     "each of 1 threads has arrays of 280000 bytes, expected 262144 at most");
  expect_unsupported(
      of_phase(kXandY,
               "thread t in 0..64 { alloc stack s: f32[20000] { s[t] = X[t]  Y[t] = s[t] } }"),
      "each of 64 threads has arrays of 80000 bytes, expected 65536 at most");
  const ir::Program large = of_phase(
      kXandY, "thread t in 0..64 { alloc stack s: f32[70000] { s[t] = X[t]  Y[t] = s[t] } }");
  EXPECT_EQ(print_c(large, Dialect::kCuda).status().message(),
            "each of 64 threads has arrays of 280000 bytes, expected 262144 at most");
  PrintOptions few;
  few.max_nodes = 5;
  expect_unsupported(of_phase(kXandY, "for i in 0..64 { Y[i] = X[i] + X[i] }"),
                     "the kernel becomes too much code", few);
}

// A loop over threads that runs once gives way to its only index.
TEST(print_c, powers_of_2_have_a_function_of_their_own) {
  const ir::Program program =
      of_phase(kXandY, "for i in 0..64 { Y[i] = pow(2.0, X[i]) + pow(X[i], 2.5) }");
  const std::string opencl = text_of(program), cuda = text_of(program, Dialect::kCuda);
  EXPECT_TRUE(has(opencl, "exp2(X[i]) + pow(X[i], 2.5f)")) << opencl;
  EXPECT_TRUE(has(cuda, "exp2f(X[i]) + powf(X[i], 2.5f)")) << cuda;
}

TEST(print_c, fragments_are_arrays_of_a_thread) {
  const std::string text = text_of(of_phase(
      kXandY,
      "alloc fragment s: f32[1, 16, 4] {\n"
      "thread t in 0..1 { thread u in 0..16 { for i in 0..4 { s[0, u, i] = X[u * 4 + i] } } }\n"
      "thread t in 0..1 { thread u in 0..16 { for i in 0..4 { Y[u * 4 + i] = s[t, u, 3 - i] } } "
      "} }"));
  EXPECT_TRUE(has(text, "float s[4];")) << text;
  EXPECT_TRUE(has(text, "s[i] = X[i + u * 4];")) << text;
  EXPECT_TRUE(has(text, "Y[i + u * 4] = s[3 - i];")) << text;
}

TEST(print_c, asynchronous_stores_are_copies_in_cuda_and_stores_in_opencl) {
  const ir::Program program = parsed(R"(program p {
  input X: f32[4, 66]
  input H: f16[4, 64]
  output Y: f32[4, 64]
  phase {
    parallel b in 0..4 {
      alloc shared s: f32[64] { alloc shared h: f16[64] { alloc shared u: f32[64] {
        thread t in 0..16 {
          vectorized v in 0..4 { async s[t * 4 + v] = X[b, t * 4 + v] }
          vectorized v in 0..4 { async h[t * 4 + v] = select(b < 3, H[b, t * 4 + v], f16(0)) }
          vectorized v in 0..2 { async u[t * 2 + v] = select(t + v < 9, X[b, t * 2 + v], 0.0) }
          async h[t] = H[b, t]
        }
        commit
        wait 0
        barrier
        thread t in 0..16 { for i in 0..4 { Y[b, i * 16 + t] = s[i * 16 + t] + f32(h[t]) + u[t] } }
      } } }
    }
  }
}
)");
  const std::string cuda = text_of(program, Dialect::kCuda);
  // A row of X begins at a multiple of 8 bytes.
  EXPECT_TRUE(has(cuda, "copy_async_8(&s[t * 4 + v], &X[b * 66 + t * 4 + v], true);")) << cuda;
  EXPECT_TRUE(has(cuda, "copy_async_8(&h[t * 4], &H[b * 64 + t * 4], b < 3);")) << cuda;
  EXPECT_TRUE(has(cuda, "copy_async_4(&u[t * 2 + v], &X[b * 66 + t * 2 + v], t + v < 9);")) << cuda;
  EXPECT_TRUE(has(cuda, "h[t] = H[b * 64 + t];")) << "two bytes are too few: " << cuda;
  EXPECT_TRUE(has(cuda, "commit_copies();\n  wait_copies<0>();\n  __sync")) << cuda;
  EXPECT_FALSE(has(cuda, "copy_async_16"));
  const std::string opencl = text_of(program);
  EXPECT_TRUE(has(opencl, "h[t] = H[b * 64 + t];")) << opencl;
  EXPECT_FALSE(has(opencl, "copies"));
}

// The address of what is not copied is computed, too.
TEST(print_c, a_source_that_is_undefined_without_its_guard_is_copied_by_a_store) {
  const auto copied = [](const std::string& index) {
    const ir::Program program =
        of_phase(std::string(kXandY) + "  input N: i64[4]\n",
                 fmt::format("alloc shared s: f32[64] {{\n"
                             "thread t in 0..64 {{ async s[t] = select(t < 4, X[{}], 0.0) }}\n"
                             "commit  wait 0  thread t in 0..64 {{ Y[t] = s[t] }} }}",
                             index));
    return has(text_of(program, Dialect::kCuda), "copy_async_4(");
  };
  EXPECT_TRUE(copied("t // 2"));
  EXPECT_FALSE(copied("N[t]"));
  EXPECT_FALSE(copied("5 % (4 - t)"));
}

TEST(print_c, the_program_is_verified) {
  const Result<Source> source =
      print_c(of_phase(kXandY, "thread t in 0..64 { barrier  Y[t] = X[t] }"), Dialect::kOpenCl);
  EXPECT_EQ(source.status().message(), "phase 0: a barrier inside of a loop over threads");
}

// Returns the text between the fences of a block of code of a page.
std::string block(const std::string& page, const std::string& language) {
  const std::string fence = "```" + language + "\n";
  const size_t begin = page.find(fence);
  if (begin == std::string::npos) return "";
  return page.substr(begin + fence.size(), page.find("```\n", begin + 3) - begin - fence.size());
}

TEST(print_c, documentation_shows_what_is_printed) {
  std::ifstream file(HONE_GPU_CODE_DOC);
  std::stringstream page;
  page << file.rdbuf();
  const ir::Program program = parsed(block(page.str(), "ir"));
  EXPECT_EQ(text_of(program, Dialect::kOpenCl), block(page.str(), "opencl"));
  EXPECT_EQ(text_of(program, Dialect::kCuda), block(page.str(), "cuda"));
}

// A kernel of many programs of which one cannot be printed has those of the others.
TEST(print_c, a_source_of_several_programs) {
  SourcePrinter printer(Dialect::kOpenCl);
  const ir::Program good = of_phase(std::string(kXandY) + "  constant W: f32[2] = {1.0, 2.0}\n",
                                    "for i in 0..64 { Y[i] = X[i] * W[i % 2] }");
  ASSERT_TRUE(printer.add(good, prefix("a")).ok());
  const std::string before = printer.text();
  EXPECT_FALSE(printer.add(of_phase(kXandY, "Y[0] = exp(X[0])  extern f(X, Y)")).ok());
  EXPECT_EQ(printer.text(), before);
  ASSERT_TRUE(printer.add(good, prefix("b")).ok());
  EXPECT_TRUE(has(printer.text(), "__constant float known_W[2] = {1.0f, 2.0f};")) << printer.text();
  EXPECT_TRUE(has(printer.text(), "__constant float known_W_1[2] = {1.0f, 2.0f};"))
      << printer.text();
  EXPECT_TRUE(has(printer.text(), "X[i] * known_W_1[i % 2]")) << printer.text();
}

}  // namespace
}  // namespace hone::backend::gpu
