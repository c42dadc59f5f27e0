// Latency of fork and join, by threads; the work is empty.
#include <benchmark/benchmark.h>

#include <atomic>
#include <vector>

#include "hone/runtime/float_mode.h"
#include "hone/runtime/pool.h"

namespace hone::runtime {
namespace {

int nothing(void* const*, void*, int64_t, int64_t, int) { return 0; }

int work_ns(void* const* args, void*, int64_t first, int64_t last, int) {
  const int64_t each = *static_cast<const int64_t*>(args[0]);
  for (int64_t i = first; i < last; ++i) {
    const int64_t end = clock_ns() + each;
    while (clock_ns() < end) benchmark::DoNotOptimize(end);
  }
  return 0;
}

// Two tiles that wait for each other, so that both threads must take part: the whole way there and
// back. args: a counter.
int meet(void* const* args, void*, int64_t, int64_t, int) {
  auto& arrived = *static_cast<std::atomic<int>*>(args[0]);
  arrived.fetch_add(1);
  while (arrived.load() % 2 != 0) benchmark::DoNotOptimize(arrived);
  return 0;
}

void BM_meet(benchmark::State& state) {
  Pool* pool = pool_create({.num_threads = 2});
  std::atomic<int> arrived{0};
  void* args[] = {&arrived};
  const PhaseCall phase = {meet, args, 2, 0};
  for (auto _ : state) pool_run(pool, &phase, 1, nullptr, 0);
  pool_destroy(pool);
}
BENCHMARK(BM_meet)->UseRealTime();

// Measures what the caller's floating-point mode adds to a run: it is saved, set and restored.
void BM_float_mode(benchmark::State& state) {
  for (auto _ : state) {
    const FloatMode mode;
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_float_mode);

// A run of one tile on the caller's thread: all that is not the kernel's.
void BM_run_alone(benchmark::State& state) {
  Pool* pool = pool_create({.num_threads = 1});
  const PhaseCall phase = {nothing, nullptr, 1, 0};
  for (auto _ : state) pool_run(pool, &phase, 1, nullptr, 0);
  pool_destroy(pool);
}
BENCHMARK(BM_run_alone);

// One phase of one tile per thread: time per phase, workers spinning.
void BM_fork_join(benchmark::State& state) {
  const int threads = static_cast<int>(state.range(0));
  Pool* pool = pool_create({.num_threads = threads});
  const std::vector<PhaseCall> phases(100, {nothing, nullptr, threads, 0});
  for (auto _ : state) pool_run(pool, phases.data(), 100, nullptr, 0);
  state.SetItemsProcessed(state.iterations() * 100);
  pool_destroy(pool);
}
BENCHMARK(BM_fork_join)->Arg(1)->Arg(2)->Arg(4)->UseRealTime();

// Workers asleep at every phase.
void BM_fork_join_asleep(benchmark::State& state) {
  Pool* pool = pool_create({.num_threads = 2, .spin_ns = 0});
  const PhaseCall phase = {nothing, nullptr, 2, 0};
  for (auto _ : state) {
    state.PauseTiming();
    const int64_t end = clock_ns() + 50'000;
    while (clock_ns() < end) benchmark::DoNotOptimize(end);
    pool_expect_other_work(pool);  // else short runs leave them asleep
    state.ResumeTiming();
    pool_run(pool, &phase, 1, nullptr, 0);
  }
  pool_destroy(pool);
}
BENCHMARK(BM_fork_join_asleep)->UseRealTime();

// 16 tiles of some length on two threads: items per second against the ideal of 2 / length.
void BM_two_threads_16_tiles(benchmark::State& state) {
  int64_t each = state.range(0);
  void* args[] = {&each};
  Pool* pool = pool_create({.num_threads = 2});
  const PhaseCall phase = {work_ns, args, 16, 0};
  for (auto _ : state) pool_run(pool, &phase, 1, nullptr, 0);
  state.counters["efficiency"] =
      benchmark::Counter(static_cast<double>(each) * 8e-9 * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
  pool_destroy(pool);
}
BENCHMARK(BM_two_threads_16_tiles)->Arg(1'000)->Arg(10'000)->Arg(100'000)->UseRealTime();

}  // namespace
}  // namespace hone::runtime

BENCHMARK_MAIN();
