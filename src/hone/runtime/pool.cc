#include "hone/runtime/pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <new>

#include "hone/runtime/cpu_budget.h"
#include "hone/runtime/float_mode.h"
#include "hone/runtime/placement.h"
#include "hone/runtime/process_id.h"
#include "hone/runtime/waking.h"

// How a phase, or a group of phases that join, runs. The caller writes `group`, then `pending`,
// then every thread's `share`, a packed range of units not yet taken. A thread takes units by a
// compare-and-swap on a share, its own or another's; only then does it read `group`, and it
// subtracts what it has done from `pending`. The caller goes on when `pending` is 0: nobody can
// hold units then. So a late thread is harmless: what it succeeds in taking belongs to the group
// that runs at that moment, whatever it saw before.
//
// A unit is a tile of a phase that runs alone. Phases that join have as many units as their part of
// the work is large, so that ranges of the same length are about the same work: a tile belongs to
// the unit in which it starts, of which there may be fewer than tiles, or more. Each thread has
// PhaseCall::units of each phase, one phase behind the other, which are its part of the phase, as
// if that were alone. With the first phase the parts begin at thread 0; with each other at the
// thread that has the next tile, so that single tiles go to one thread after the other.

namespace hone::runtime {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kStackBytes = 1 << 20;       // kernels keep what is large in scratch memory
constexpr uint32_t kCallerSleeps = 1u << 31;  // in `pending`
constexpr int64_t kMaxUnits = kCallerSleeps - 1;
constexpr int64_t kCrowdedSpin = 1'000;          // ns, with more threads than CPUs
constexpr int64_t kMaxSpin = 3'600'000'000'000;  // an hour; the clock's time plus this fits
constexpr int kSpinsPerClock = 16;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  __asm__ volatile("yield");
#endif
}

// Waits while `word` holds `value`; may also return early.
void futex_wait(std::atomic<uint32_t>& word, uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
void futex_wake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

struct Range {
  uint32_t first;
  uint32_t last;
  [[nodiscard]] bool empty() const { return first >= last; }
  [[nodiscard]] uint32_t size() const { return last - first; }
};
uint64_t pack(Range r) { return (static_cast<uint64_t>(r.first) << 32) | r.last; }
Range unpack(uint64_t word) {
  return {static_cast<uint32_t>(word >> 32), static_cast<uint32_t>(word)};
}

struct alignas(kLine) Worker {
  std::atomic<uint64_t> share{0};
  std::atomic<uint32_t> sleeps{0};  // 1: waits on this futex
  int index = 0;
  Pool* pool = nullptr;
  pthread_t handle{};
};

// The state that threads read while phases run together.
struct Group {
  const PhaseCall* phases = nullptr;
  int64_t count = 0;
  int64_t shares = 0;  // for joined phases: number of threads that take part
  int64_t length = 0;  // for joined phases: units of each share
  char* scratch = nullptr;
  int64_t scratch_stride = 0;
  ThreadSpan* spans = nullptr;  // one per thread; null: nobody asks
};

// Returns the units of a phase that runs alone: its number of tiles, but no more than fit the
// packed ranges.
int64_t units_of(const PhaseCall& call) {
  return call.num_tiles < kMaxUnits ? call.num_tiles : kMaxUnits;
}

// The first tile that starts in this unit or behind it: unit * tiles / units, rounded up.
int64_t first_tile(int64_t unit, int64_t tiles, int64_t units) {
  if (tiles == units) return unit;
  return unit * (tiles / units) + (unit * (tiles % units) + units - 1) / units;
}

}  // namespace

class Pool {
 public:
  int num_threads = 1;
  int64_t spin_ns = 0;
  ProcessId self;     // in which process a caller is
  pid_t process = 0;  // that has the threads
  ParallelFor parallel_for = nullptr;
  void* owner = nullptr;
  Worker* workers = nullptr;
  Placement placement;
  Waking waking;
  alignas(kLine) Group group;
  alignas(kLine) std::atomic<uint32_t> pending{0};  // units not yet done
  alignas(kLine) std::atomic<int> failure{0};       // first result of a kernel that was not 0
  std::atomic<bool> stop{false};
};

namespace {

// Takes units from the front of a share: half of what is left, so that others find something to
// take if this thread is slow.
Range take_front(Worker& worker) {
  uint64_t seen = worker.share.load(std::memory_order_relaxed);
  while (true) {
    const Range left = unpack(seen);
    if (left.empty()) return {0, 0};
    const uint32_t count = (left.size() + 1) / 2;
    const Range rest = {left.first + count, left.last};
    if (worker.share.compare_exchange_weak(seen, pack(rest), std::memory_order_acq_rel,
                                           std::memory_order_relaxed))
      return {left.first, left.first + count};
  }
}

Range take_back(Worker& victim) {
  uint64_t seen = victim.share.load(std::memory_order_relaxed);
  while (true) {
    const Range left = unpack(seen);
    if (left.empty()) return {0, 0};
    const uint32_t count = (left.size() + 1) / 2;
    const Range rest = {left.first, left.last - count};
    if (victim.share.compare_exchange_weak(seen, pack(rest), std::memory_order_acq_rel,
                                           std::memory_order_relaxed))
      return {left.last - count, left.last};
  }
}

// Each thread notes its own work.
void note_work(ThreadSpan& span, int64_t begin_ns) {
  if (span.end_ns == 0) span.begin_ns = begin_ns;
  span.end_ns = clock_ns();
}

// Runs the tiles that start in these of a phase's units.
void run_tiles(Pool& pool, const PhaseCall& call, Range units, int64_t all_units, int thread) {
  const int64_t first = first_tile(units.first, call.num_tiles, all_units);
  const int64_t last = first_tile(units.last, call.num_tiles, all_units);
  if (first >= last) return;
  void* scratch = pool.group.scratch + thread * pool.group.scratch_stride;
  ThreadSpan* const spans = pool.group.spans;
  const int64_t begin_ns = spans == nullptr ? 0 : clock_ns();
  const int result = call.kernel(call.args, scratch, first, last, thread);
  if (spans != nullptr) note_work(spans[thread], begin_ns);
  if (result != 0) {
    int none = 0;
    pool.failure.compare_exchange_strong(none, result, std::memory_order_relaxed);
  }
}

// `units` lie in one share.
void run_units(Pool& pool, Range units, int thread) {
  const Group& group = pool.group;
  if (group.count == 1) {
    run_tiles(pool, *group.phases, units, units_of(*group.phases), thread);
    return;
  }
  const int64_t share = units.first / group.length;
  int64_t first = units.first - share * group.length;  // counted from the phase's first unit here
  int64_t last = units.last - share * group.length;
  int64_t start = 0;  // the share in which the phase begins
  for (const PhaseCall* call = group.phases; last > 0; ++call) {
    if (first < call->units) {
      const int64_t part = (share - start + group.shares) % group.shares;
      const int64_t here = part * call->units;
      const Range own = {static_cast<uint32_t>(here + (first > 0 ? first : 0)),
                         static_cast<uint32_t>(here + (last < call->units ? last : call->units))};
      run_tiles(pool, *call, own, group.shares * call->units, thread);
    }
    first -= call->units;
    last -= call->units;
    start = (start + call->num_tiles) % group.shares;
  }
}

void finish_units(Pool& pool, uint32_t count) {
  const uint32_t before = pool.pending.fetch_sub(count, std::memory_order_acq_rel);
  if (before - count == kCallerSleeps) futex_wake(pool.pending);
}

// Runs what is left of the own share, then what others have left.
void work(Pool& pool, int thread) {
  uint32_t done = 0;
  Range units;
  while (!(units = take_front(pool.workers[thread])).empty()) {
    run_units(pool, units, thread);
    done += units.size();
  }
  if (done > 0) {
    if (thread > 0) pool.waking.note_help();
    finish_units(pool, done);
  }
  for (int i = 1; i < pool.num_threads; ++i) {
    const int victim = thread + i < pool.num_threads ? thread + i : thread + i - pool.num_threads;
    while (!(units = take_back(pool.workers[victim])).empty()) {
      run_units(pool, units, thread);
      if (thread > 0) pool.waking.note_help();
      finish_units(pool, units.size());
    }
    if ((pool.pending.load(std::memory_order_relaxed) & ~kCallerSleeps) == 0) return;
  }
}

// Waits until the worker has a share or the pool stops: spins, then sleeps.
void await_share(Worker& worker) {
  const Pool& pool = *worker.pool;
  const auto idle = [&](std::memory_order order) {
    return unpack(worker.share.load(order)).empty() && !pool.stop.load(order);
  };
  int64_t deadline = 0;
  while (true) {
    for (int i = 0; i < kSpinsPerClock; ++i) {
      if (!idle(std::memory_order_relaxed)) return;
      relax();
    }
    const int64_t now = clock_ns();
    if (deadline == 0) deadline = now + pool.spin_ns;
    if (now >= deadline) break;
  }
  // Either this thread sees the new share, or the caller, who stores the share first, sees
  // `sleeps`.
  worker.sleeps.store(1, std::memory_order_seq_cst);
  while (idle(std::memory_order_seq_cst) && worker.sleeps.load(std::memory_order_relaxed) == 1)
    futex_wait(worker.sleeps, 1);
  worker.sleeps.store(0, std::memory_order_relaxed);
}

void* worker_main(void* argument) {
  Worker& worker = *static_cast<Worker*>(argument);
  const FloatMode mode;
  while (true) {
    await_share(worker);
    if (worker.pool->stop.load(std::memory_order_acquire)) return nullptr;
    work(*worker.pool, worker.index);
  }
}

void wake(Worker& worker) {
  if (worker.sleeps.load(std::memory_order_seq_cst) == 1 &&
      worker.sleeps.exchange(0, std::memory_order_seq_cst) == 1)
    futex_wake(worker.sleeps);
}

// The caller's wait for the threads that still hold tiles.
void await_pending(Pool& pool) {
  int64_t deadline = 0;
  while (true) {
    for (int i = 0; i < kSpinsPerClock; ++i) {
      if (pool.pending.load(std::memory_order_acquire) == 0) return;
      relax();
    }
    const int64_t now = clock_ns();
    if (deadline == 0) deadline = now + pool.spin_ns;
    if (now >= deadline) break;
  }
  uint32_t left = pool.pending.fetch_or(kCallerSleeps, std::memory_order_acq_rel) | kCallerSleeps;
  while (left != kCallerSleeps) {
    futex_wait(pool.pending, left);
    left = pool.pending.load(std::memory_order_acquire);
  }
}

// A task of the owner's: what a worker does between two sleeps.
void run_task(void* context, int i) {
  Pool& pool = *static_cast<Pool*>(context);
  if (i < 0 || i >= pool.num_threads) return;
  const FloatMode mode;
  work(pool, i);
}

// It must not be called in a forked child, which has the numbers of its parent's threads and not
// the threads.
void place_workers(Pool& pool) {
  pool.placement.follow_caller();
  int foreign = 1;
  while (foreign < pool.num_threads && pool.placement.place(pool.workers[foreign].handle))
    ++foreign;
  if (foreign == pool.num_threads) return;
  for (int i = 1; i < pool.num_threads; ++i) {
    if (i != foreign) pool.placement.release(pool.workers[i].handle);
  }
}

// On how many threads.
int64_t shares_of(const Pool& pool, const PhaseCall* phases, int64_t count) {
  int64_t shares = pool.num_threads, tiles = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int limit = phases[i].max_threads;
    if (limit > 0 && limit < shares) shares = limit;
    tiles += phases[i].num_tiles;
  }
  return tiles < shares ? tiles : shares;
}

int run_serially(const PhaseCall* phases, int64_t count, void* scratch, ThreadSpan* spans) {
  int result = 0;
  for (int64_t i = 0; i < count && result == 0; ++i) {
    const PhaseCall& call = phases[i];
    if (call.num_tiles == 0) continue;
    const int64_t begin_ns = spans == nullptr ? 0 : clock_ns();
    result = call.kernel(call.args, scratch, 0, call.num_tiles, 0);
    if (spans != nullptr) note_work(spans[0], begin_ns);
  }
  return result;
}

enum class Others : uint8_t {
  kNone,   // the caller works alone
  kAwake,  // those help that are awake
  kAll,    // those that sleep are woken
};

// Returns which other threads take part in work of so many shares.
Others others_for(Pool& pool, int64_t shares) {
  if (pool.parallel_for != nullptr) return Others::kAll;
  int64_t asleep = 0;
  for (int64_t i = 1; i < shares; ++i)
    asleep += pool.workers[i].sleeps.load(std::memory_order_relaxed);
  const bool wakes = asleep == 0 || pool.waking.pays(clock_ns(), pool.spin_ns);
  if (!wakes && asleep == shares - 1) return Others::kNone;
  if (pool.placement.is_outdated()) place_workers(pool);
  return wakes ? Others::kAll : Others::kAwake;
}

// `mode`: of the calling thread.
int run_group(Pool& pool, const PhaseCall* phases, int64_t count, char* scratch,
              int64_t scratch_stride, bool alone, FloatMode& mode, ThreadSpan* spans) {
  const int64_t shares = alone ? 1 : shares_of(pool, phases, count);
  const Others others = shares <= 1 ? Others::kNone : others_for(pool, shares);
  if (others == Others::kNone) return run_serially(phases, count, scratch, spans);
  int64_t units = units_of(*phases), length = 0;
  if (count > 1) {
    for (int64_t i = 0; i < count; ++i) length += phases[i].units;
    units = shares * length;
  }
  pool.group = {phases, count, shares, length, scratch, scratch_stride, spans};
  pool.pending.store(static_cast<uint32_t>(units), std::memory_order_relaxed);
  for (int64_t i = shares - 1; i >= 0; --i) {
    const Range range = {static_cast<uint32_t>(units * i / shares),
                         static_cast<uint32_t>(units * (i + 1) / shares)};
    pool.workers[i].share.store(pack(range), std::memory_order_seq_cst);
    if (i > 0 && pool.parallel_for == nullptr && others == Others::kAll) wake(pool.workers[i]);
  }
  // Behind it, work(0) finds only what an owner that skipped a task has left.
  if (pool.parallel_for != nullptr) {
    mode.leave();  // the owner's code, and the threads that it may start, have the owner's mode
    pool.parallel_for(pool.owner, static_cast<int>(shares), run_task, &pool);
    mode.enter();
  }
  work(pool, 0);
  await_pending(pool);
  const int result = pool.failure.load(std::memory_order_relaxed);
  if (result != 0) pool.failure.store(0, std::memory_order_relaxed);
  return result;
}

int start_workers(Pool& pool) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return 1;
  pthread_attr_setstacksize(&attributes, kStackBytes);
  // Signals belong to the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int started = 1;
  for (; started < pool.num_threads; ++started) {
    Worker& worker = pool.workers[started];
    if (pthread_create(&worker.handle, &attributes, worker_main, &worker) != 0) break;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return started;
}

void stop_workers(Pool& pool, int count) {
  pool.stop.store(true, std::memory_order_seq_cst);
  for (int i = 1; i < count; ++i) wake(pool.workers[i]);
  for (int i = 1; i < count; ++i) pthread_join(pool.workers[i].handle, nullptr);
}

}  // namespace

int64_t clock_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

Pool* pool_create(const PoolOptions& options) {
  const int cpus = usable_cpus();
  int threads = options.num_threads > 0 ? options.num_threads : cpus;
  if (threads > kMaxThreads) threads = kMaxThreads;
  const size_t bytes = sizeof(Pool) + static_cast<size_t>(threads) * sizeof(Worker);
  void* memory = nullptr;
  if (posix_memalign(&memory, kLine, bytes) != 0) return nullptr;
  Pool* pool = new (memory) Pool;
  pool->num_threads = threads;
  pool->spin_ns = options.spin_ns >= 0 ? options.spin_ns
                  : threads > cpus     ? kCrowdedSpin
                                       : kDefaultSpin;
  if (pool->spin_ns > kMaxSpin) pool->spin_ns = kMaxSpin;
  pool->self.begin();
  pool->process = pool->self.get();
  pool->parallel_for = options.parallel_for;
  pool->owner = options.owner;
  pool->workers = reinterpret_cast<Worker*>(static_cast<char*>(memory) + sizeof(Pool));
  for (int i = 0; i < threads; ++i) {
    Worker* worker = new (&pool->workers[i]) Worker;
    worker->index = i;
    worker->pool = pool;
  }
  if (pool->parallel_for != nullptr) return pool;
  pool->placement.begin(threads);
  const int started = start_workers(*pool);
  if (started == threads) return pool;
  stop_workers(*pool, started);
  pool->self.end();
  free(memory);
  return nullptr;
}

void pool_destroy(Pool* pool) {
  if (pool == nullptr) return;
  // In a forked child the threads do not exist.
  if (pool->process == pool->self.get() && pool->parallel_for == nullptr)
    stop_workers(*pool, pool->num_threads);
  pool->self.end();
  free(pool);
}

int pool_num_threads(const Pool* pool) { return pool->num_threads; }

pid_t pool_process(const Pool* pool) { return pool->self.get(); }

void pool_expect_other_work(Pool* pool) { pool->waking.forget(); }

int pool_run(Pool* pool, const PhaseCall* phases, int64_t num_phases, void* scratch,
             int64_t scratch_stride, int64_t* phase_ns, ThreadSpan* spans) {
  // In a forked child there is no other thread, the owner's pool has none either, and the shares
  // may be what was left of a run that was on.
  const bool alone = pool->process != pool->self.get();
  pool->waking.begin_run();
  FloatMode mode;
  if (spans != nullptr)
    memset(spans, 0, static_cast<size_t>(num_phases * pool->num_threads) * sizeof(ThreadSpan));
  int64_t start = phase_ns == nullptr ? 0 : clock_ns();
  int64_t end = 0;
  for (int64_t i = 0; i < num_phases; i = end) {
    end = i + 1;
    while (phase_ns == nullptr && end < num_phases && phases[end].joins) ++end;
    ThreadSpan* const own = spans == nullptr ? nullptr : spans + i * pool->num_threads;
    const int result = run_group(*pool, phases + i, end - i, static_cast<char*>(scratch),
                                 scratch_stride, alone, mode, own);
    if (phase_ns != nullptr) {
      const int64_t now = clock_ns();
      phase_ns[i] = now - start;
      start = now;
    }
    if (result != 0) return result;
  }
  if (pool->waking.learns()) pool->waking.end_run(clock_ns());
  return 0;
}

}  // namespace hone::runtime
