#include "rivals.h"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>

#include "program.h"

namespace {

using hone::rivals::Json;
using hone::rivals::Program;

// Twelve independent chains of fused multiply-adds keep two units of latency 4 or 5 busy.
constexpr int kChains = 12;
constexpr int kSteps = 1'000'000;

template <typename Vector>
[[gnu::always_inline]] inline float multiply_adds() {
  Vector sums[kChains] = {};
  for (Vector& sum : sums) asm volatile("" : "+v"(sum));  // or they would be one
  Vector factor = Vector{} + 0.999F, term = Vector{} + 0.001F;
  for (int step = 0; step < kSteps; ++step) {
    asm volatile("" : "+v"(factor), "+v"(term));
    for (Vector& sum : sums) sum = sum * factor + term;
  }
  Vector all = {};
  for (const Vector& sum : sums) all += sum;
  return all[0];
}

using Vector256 = float __attribute__((vector_size(32)));
using Vector512 = float __attribute__((vector_size(64)));
[[gnu::target("avx2,fma"), gnu::optimize("O3")]] float adds_256() {
  return multiply_adds<Vector256>();
}
[[gnu::target("avx512f"), gnu::optimize("O3")]] float adds_512() {
  return multiply_adds<Vector512>();
}

}  // namespace

extern "C" {

void* rival_create(const char* json, const float* const* arrays, char* message, int message_size) {
  try {
    return new Program(Json::parse(json), arrays);
  } catch (const std::exception& failure) {
    std::snprintf(message, static_cast<size_t>(message_size), "%s", failure.what());
    return nullptr;
  }
}

void rival_run(void* program, int times) { static_cast<Program*>(program)->run(times); }

int rival_check(void* program, int index, float* output) {
  try {
    static_cast<Program*>(program)->check(index, output);
    return 0;
  } catch (const std::exception&) {
    return 1;
  }
}

const char* rival_describe(void* program) {
  return static_cast<Program*>(program)->description().c_str();
}

void rival_destroy(void* program) { delete static_cast<Program*>(program); }

double rival_peak_flops(int threads, int bits) {
  double best = 0;
  float sink = 0;
  for (int attempt = 0; attempt < 8; ++attempt) {
    const auto start = std::chrono::steady_clock::now();
#pragma omp parallel num_threads(threads) reduction(+ : sink)
    sink += bits == 512 ? adds_512() : adds_256();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const double flops = 2.0 * kChains * kSteps * (bits / 32) * threads;
    best = std::max(best, flops / seconds.count());
  }
  return sink == 0 ? 0 : best;  // the sum is used, so that it is computed
}

}  // extern "C"
