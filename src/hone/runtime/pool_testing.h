// runtime/pool_testing.h - kernels and owners of threads for tests of the pool. The kernels
// count their tiles or wait for each other.
#pragma once

#include <pthread.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "hone/runtime/pool.h"

namespace hone::runtime {

using PoolPtr = std::unique_ptr<Pool, void (*)(Pool*)>;

inline PoolPtr make_pool(int threads, int64_t spin_ns = -1) {
  return {pool_create({.num_threads = threads, .spin_ns = spin_ns}), pool_destroy};
}

// A kernel whose args[0] has a plain int per tile. If a tile runs twice or a barrier is missing,
// the count is wrong and there is a race.
inline int count_tiles(void* const* args, void*, int64_t first, int64_t last, int) {
  int* counts = static_cast<int*>(args[0]);
  for (int64_t i = first; i < last; ++i) ++counts[i];
  return 0;
}

// A kernel whose args are the values before, the values after and the number of tiles. It adds up
// both neighbours of the phase before.
inline int add_neighbours(void* const* args, void*, int64_t first, int64_t last, int) {
  const auto* before = static_cast<const uint64_t*>(args[0]);
  auto* after = static_cast<uint64_t*>(args[1]);
  const int64_t count = *static_cast<const int64_t*>(args[2]);
  for (int64_t i = first; i < last; ++i)
    after[i] = before[(i + count - 1) % count] + 3 * before[(i + 1) % count] + 1;
  return 0;
}

// Records that `self`, 0 or 1, has arrived and waits for the other one; returns 1 if that never
// arrives.
inline int meet_other(std::atomic<int>* seen, int self) {
  seen[self].store(1);
  const int64_t deadline = clock_ns() + 20'000'000'000;
  while (seen[1 - self].load() == 0)
    if (clock_ns() > deadline) return 1;
  return 0;
}

inline int note_thread(void* const* args, void* scratch, int64_t, int64_t, int thread) {
  *static_cast<pthread_t*>(args[0]) = pthread_self();
  *static_cast<int*>(scratch) = thread + 1;
  return 0;
}

inline int fail_on_tile_5(void* const*, void*, int64_t first, int64_t last, int) {
  return first <= 5 && 5 < last ? 42 : 0;
}

// Runs the tasks of a call as an owner's threads may.
inline void on_threads(void* calls, int count, PoolTask task, void* context) {
  *static_cast<int*>(calls) += 1;
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(task, context, i);
  for (std::thread& thread : threads) thread.join();
}
inline void backwards(void* calls, int count, PoolTask task, void* context) {
  *static_cast<int*>(calls) += 1;
  for (int i = count - 1; i >= 0; --i) task(context, i);
}
inline void not_at_all(void* calls, int, PoolTask, void*) { *static_cast<int*>(calls) += 1; }

}  // namespace hone::runtime
