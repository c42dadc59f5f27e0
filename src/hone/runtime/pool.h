// runtime/pool.h - the persistent threads that run kernels. This does not use libstdc++ at
// run time.
//
// The caller is thread 0 and works too. A phase's tiles are split evenly. Each thread takes its
// share in chunks, each half of what is left, and a thread that is done takes from the others, so a
// thread that sleeps or is descheduled delays nothing. In a forked child, also after a fork() while
// phases ran, the caller runs everything by itself. A phase of one tile wakes nobody. Phases that
// are independent may join: a thread's share is then a share of each of them. Idle workers spin for
// a bounded time, then sleep on a futex, and are woken unless they would come too late
// (runtime/waking.h). A pool serves one caller at a time; any number of pools may run at once.
// `run` allocates no memory. A pool may also have no threads and run on its owner's, by a callback.
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "hone/runtime/kernel_abi.h"

namespace hone::runtime {

// Runs task(context, i) for 0 <= i < count, on any threads, and returns when all are done.
using PoolTask = void (*)(void* context, int i);
using ParallelFor = void (*)(void* owner, int count, PoolTask task, void* context);

struct PoolOptions {
  int num_threads = 0;  // includes the caller; 0 means all CPUs that this process may use
  // An idle worker spins this long before it sleeps. -1 means kDefaultSpin, or almost nothing if
  // there are more threads than CPUs.
  int64_t spin_ns = -1;
  ParallelFor parallel_for = nullptr;  // if set, no threads are started
  void* owner = nullptr;               // argument of parallel_for
};
inline constexpr int64_t kDefaultSpin = 150'000;  // in ns; longer than most kernels of one tile
inline constexpr int kMaxThreads = 1024;

struct PhaseCall {
  hone_kernel kernel;
  void* const* args;
  int64_t num_tiles;
  int max_threads;     // 0 means all; the least of joined phases counts
  bool joins = false;  // runs concurrently with the phase before
  // For joined phases, including the first: this phase's share of their work, in units of any size,
  // at least 1. Their sum is at most kMaxJoinedUnits. The phases with the largest tiles should come
  // first.
  int32_t units = 0;
};
inline constexpr int64_t kMaxJoinedUnits = 1 << 20;

// When a thread worked on a phase: from the start of its first tiles to the end of its last ones,
// by clock_ns(). Both are 0 if it had none.
struct ThreadSpan {
  int64_t begin_ns, end_ns;
};

class Pool;  // opaque type
// Returns null if there is no memory or no thread.
[[nodiscard]] Pool* pool_create(const PoolOptions& options);
void pool_destroy(Pool* pool);  // accepts null
[[nodiscard]] int pool_num_threads(const Pool* pool);
// Says that the next phases may be longer than those before, so that threads are worth waking.
void pool_expect_other_work(Pool* pool);
// Returns the process that calls, as getpid() does, without a system call.
[[nodiscard]] pid_t pool_process(const Pool* pool);
// Runs the phases one after the other with a barrier between them, except those that join. Thread i
// gets the scratch memory at scratch + i * scratch_stride. Returns 0, or the first result of a
// kernel that was not 0; the phases behind the next barrier then do not run. If `phase_ns` is not
// null, it receives each phase's time, and no phases join. If `spans` is not null either, it
// receives that of thread t in phase i at i * pool_num_threads() + t.
int pool_run(Pool* pool, const PhaseCall* phases, int64_t num_phases, void* scratch,
             int64_t scratch_stride, int64_t* phase_ns = nullptr, ThreadSpan* spans = nullptr);
[[nodiscard]] int64_t clock_ns();  // monotonic clock

}  // namespace hone::runtime
