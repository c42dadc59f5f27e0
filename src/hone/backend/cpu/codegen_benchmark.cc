// The speed of generated register tiles against the machine's own FMA peak, and of the compiler.
// GFLOP/s of one thread; `of_peak` is the share of what a loop of independent FMAs reaches.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "hone/backend/cpu/compiler.h"
#include "hone/backend/cpu/sample_programs_testing.h"
#include "hone/runtime/kernel_abi.h"
#include "hone/target/target.h"

namespace hone::backend::cpu {
namespace {

target::Target avx2() { return *target::find("x86-64-avx2"); }
target::Target avx512() { return *target::find("x86-64-avx512"); }

using Clock = std::chrono::steady_clock;

double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

// The best rate of several short runs: the machine may be shared.
template <typename F>
double best_rate(double flops, const F& run) {
  double best = 0;
  const auto end = Clock::now() + std::chrono::milliseconds(300);
  while (Clock::now() < end) {
    const auto start = Clock::now();
    run();
    best = std::max(best, flops / seconds(Clock::now() - start));
  }
  return best;
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) void fma_chains_512() {
  for (int i = 0; i < 100'000; ++i) {
    asm volatile(
        "vfmadd231ps %%zmm0,%%zmm1,%%zmm2\n vfmadd231ps %%zmm0,%%zmm1,%%zmm3\n vfmadd231ps %%zmm0,%%zmm1,%%zmm4\n"
        "vfmadd231ps %%zmm0,%%zmm1,%%zmm5\n vfmadd231ps %%zmm0,%%zmm1,%%zmm6\n vfmadd231ps %%zmm0,%%zmm1,%%zmm7\n"
        "vfmadd231ps %%zmm0,%%zmm1,%%zmm8\n vfmadd231ps %%zmm0,%%zmm1,%%zmm9\n vfmadd231ps %%zmm0,%%zmm1,%%zmm10\n"
        "vfmadd231ps %%zmm0,%%zmm1,%%zmm11\n vfmadd231ps %%zmm0,%%zmm1,%%zmm12\n vfmadd231ps %%zmm0,%%zmm1,%%zmm13\n" ::
            : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
              "xmm10", "xmm11", "xmm12", "xmm13");
  }
}
__attribute__((target("avx2,fma"))) void fma_chains_256() {
  for (int i = 0; i < 100'000; ++i) {
    asm volatile(
        "vfmadd231ps %%ymm0,%%ymm1,%%ymm2\n vfmadd231ps %%ymm0,%%ymm1,%%ymm3\n vfmadd231ps %%ymm0,%%ymm1,%%ymm4\n"
        "vfmadd231ps %%ymm0,%%ymm1,%%ymm5\n vfmadd231ps %%ymm0,%%ymm1,%%ymm6\n vfmadd231ps %%ymm0,%%ymm1,%%ymm7\n"
        "vfmadd231ps %%ymm0,%%ymm1,%%ymm8\n vfmadd231ps %%ymm0,%%ymm1,%%ymm9\n vfmadd231ps %%ymm0,%%ymm1,%%ymm10\n"
        "vfmadd231ps %%ymm0,%%ymm1,%%ymm11\n vfmadd231ps %%ymm0,%%ymm1,%%ymm12\n vfmadd231ps %%ymm0,%%ymm1,%%ymm13\n" ::
            : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
              "xmm10", "xmm11", "xmm12", "xmm13");
  }
}
// Returns whether this CPU has the instructions, whichever machine the description is for.
bool executes(const target::Target& target) {
  if (target.cpu().lanes(4) < 16)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl");
}
double peak(const target::Target& target) {
  const double flops = 100'000.0 * 12 * 2 * target.cpu().lanes(4);
  return best_rate(flops, target.cpu().vector_bytes == 64 ? fma_chains_512 : fma_chains_256);
}
#else
bool executes(const target::Target&) { return false; }
double peak(const target::Target&) { return 0; }
#endif

struct Buffers {
  explicit Buffers(const ir::Program& program) {
    for (const ir::Param& param : program.params) {
      const auto bytes = static_cast<size_t>(param.buffer->num_elements() * 4 + 63) / 64 * 64;
      auto* data = static_cast<float*>(std::aligned_alloc(64, bytes));
      for (size_t i = 0; i < bytes / 4; ++i) data[i] = static_cast<float>(i % 17) * 0.0625F;
      args.push_back(data);
    }
  }
  ~Buffers() {
    for (void* p : args) std::free(p);
  }
  std::vector<void*> args;
};

void run_program(benchmark::State& state, const ir::Program& program, const target::Target& target,
                 double flops) {
  if (!executes(target)) return state.SkipWithError("this machine lacks the target's instructions");
  CompileOptions options;
  options.keep_assembly = std::getenv("HONE_BENCHMARK_ASSEMBLY") != nullptr;
  auto code = compile(program, target.cpu(), options);
  if (!code.ok()) return state.SkipWithError(code.status().message().c_str());
  if (options.keep_assembly) std::fputs(code->assembly.c_str(), stderr);
  auto loaded = LoadedCode::load(code->object);
  if (!loaded.ok()) return state.SkipWithError(loaded.status().message().c_str());
  const auto kernel = reinterpret_cast<hone_kernel>((*loaded)->symbol(code->phases[0].symbol));
  Buffers buffers(program);
  double rate = 0;
  double reachable = 0;
  for (auto _ : state) {
    reachable = std::max(reachable, peak(target));
    rate = std::max(rate, best_rate(flops, [&] {
                      kernel(buffers.args.data(), nullptr, 0, code->phases[0].num_tiles, 0);
                    }));
  }
  state.counters["GFLOP/s"] = rate * 1e-9;
  state.counters["peak"] = reachable * 1e-9;
  state.counters["of_peak"] = rate / reachable;
}

void BM_gemm(benchmark::State& state, const target::Target& target, GemmShape shape) {
  run_program(state, gemm_program(shape), target,
              2.0 * static_cast<double>(shape.m * shape.n * shape.k));
}
void BM_conv3x3(benchmark::State& state, const target::Target& target, ConvShape shape) {
  const double flops = 18.0 * static_cast<double>(shape.height * shape.width * shape.in_channels *
                                                  shape.out_channels);
  run_program(state, conv_program(shape), target, flops);
}
void BM_compile(benchmark::State& state, const target::Target& target, const ir::Program& program) {
  for (auto _ : state) {
    auto code = compile(program, target.cpu());
    benchmark::DoNotOptimize(code);
  }
}
void BM_load(benchmark::State& state) {
  auto code = compile(gemm_program({14, 32, 256, 14, 32, 16}), avx512().cpu());
  for (auto _ : state) {
    auto loaded = LoadedCode::load(code->object);
    benchmark::DoNotOptimize(loaded);
  }
}

BENCHMARK_CAPTURE(BM_gemm, avx512_14x32, avx512(), GemmShape{14, 32, 256, 14, 32, 16})
    ->Iterations(3);
BENCHMARK_CAPTURE(BM_gemm, avx512_14x32_l2, avx512(), GemmShape{140, 128, 512, 14, 32, 16})
    ->Iterations(3);
BENCHMARK_CAPTURE(BM_gemm, avx512_6x64, avx512(), GemmShape{6, 64, 256, 6, 64, 64})->Iterations(3);
BENCHMARK_CAPTURE(BM_gemm, avx2_6x16, avx2(), GemmShape{6, 16, 256, 6, 16, 8})->Iterations(3);
BENCHMARK_CAPTURE(BM_conv3x3, avx512_14x32, avx512(), ConvShape{14, 14, 64, 64, 14, 32, 16})
    ->Iterations(3);
BENCHMARK_CAPTURE(BM_conv3x3, avx512_7x64, avx512(), ConvShape{14, 14, 64, 64, 7, 64, 16})
    ->Iterations(3);
BENCHMARK_CAPTURE(BM_conv3x3, avx2_6x16, avx2(), ConvShape{12, 12, 64, 64, 6, 16, 8})
    ->Iterations(3);
BENCHMARK_CAPTURE(BM_compile, gemm_avx512, avx512(), gemm_program({14, 32, 256, 14, 32, 16}))
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_compile, conv_avx512, avx512(), conv_program({14, 14, 64, 64, 14, 32, 16}))
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_compile, gemm_avx2, avx2(), gemm_program({6, 16, 256, 6, 16, 8}))
    ->Unit(benchmark::kMillisecond);
BENCHMARK(BM_load)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace hone::backend::cpu

BENCHMARK_MAIN();
