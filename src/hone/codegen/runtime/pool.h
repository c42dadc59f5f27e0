// codegen/runtime/pool.h - the persistent threads that run kernels. No libstdc++ at run time.
//
// The caller is thread 0 and works too. A phase's tiles are split evenly; each thread takes its
// share in halving chunks, and who is done takes from the others, so a thread that sleeps or is
// descheduled holds up nothing. In a forked child, also of a fork() while phases ran, the caller
// runs all by itself. A phase of one tile wakes nobody. Phases
// that do not need each other may join: a thread's share is then a share of each of them. Idle
// workers spin for a bounded time, then sleep on a futex. A pool serves one caller at a time; any
// number of pools may run at once. `run` allocates nothing. A pool may also have no threads and run
// on its owner's, by a callback.
#pragma once

#include <stdint.h>

#include "hone/codegen/runtime/kernel_abi.h"

namespace hone::runtime {

// Runs task(context, i) for 0 <= i < count, on any threads, and returns when all are done.
using PoolTask = void (*)(void* context, int i);
using ParallelFor = void (*)(void* owner, int count, PoolTask task, void* context);

struct PoolOptions {
  int num_threads = 0;  // the caller included; 0 = all CPUs that this process may use
  // How long an idle worker spins before it sleeps. -1 = kDefaultSpin, or almost nothing if there
  // are more threads than CPUs.
  int64_t spin_ns = -1;
  ParallelFor parallel_for = nullptr;  // if set, no thread is started
  void* owner = nullptr;               // of parallel_for
};
inline constexpr int64_t kDefaultSpin = 150'000;  // ns: longer than most kernels of one tile
inline constexpr int kMaxThreads = 1024;

struct PhaseCall {
  hone_kernel kernel;
  void* const* args;
  int64_t num_tiles;
  int max_threads;     // 0 = all; of phases that run together the least counts
  bool joins = false;  // runs together with the phase before
  // Of phases that run together, the first included: this one's part of their work, in units of any
  // size, at least 1. All together: at most kMaxJoinedUnits. The largest tiles should come first.
  int32_t units = 0;
};
inline constexpr int64_t kMaxJoinedUnits = 1 << 20;

class Pool;  // opaque
// Null if memory or a thread cannot be had.
[[nodiscard]] Pool* pool_create(const PoolOptions& options);
void pool_destroy(Pool* pool);  // null is fine
[[nodiscard]] int pool_num_threads(const Pool* pool);
// Runs the phases one after the other with a barrier between, but for those that join. Thread i
// gets the scratch memory at scratch + i * scratch_stride. Returns 0, or the first result of a
// kernel that was not 0; the phases behind the next barrier do not run. `phase_ns`, if not null,
// receives each phase's time; then none joins.
int pool_run(Pool* pool, const PhaseCall* phases, int64_t num_phases, void* scratch,
             int64_t scratch_stride, int64_t* phase_ns = nullptr);
[[nodiscard]] int64_t clock_ns();  // monotonic

}  // namespace hone::runtime
