#include "hone/codegen/runtime/pool.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>
#include <thread>
#include <vector>

namespace hone::runtime {
namespace {

using PoolPtr = std::unique_ptr<Pool, void (*)(Pool*)>;

PoolPtr make_pool(int threads, int64_t spin_ns = -1) {
  return {pool_create({.num_threads = threads, .spin_ns = spin_ns}), pool_destroy};
}

// args[0]: a plain int per tile. A tile run twice, or a missing barrier, is a wrong count and a
// race.
int count_tiles(void* const* args, void*, int64_t first, int64_t last, int) {
  int* counts = static_cast<int*>(args[0]);
  for (int64_t i = first; i < last; ++i) ++counts[i];
  return 0;
}

// args: values before, values after, number of tiles: sums both neighbours of the phase before.
int add_neighbours(void* const* args, void*, int64_t first, int64_t last, int) {
  const auto* before = static_cast<const uint64_t*>(args[0]);
  auto* after = static_cast<uint64_t*>(args[1]);
  const int64_t count = *static_cast<const int64_t*>(args[2]);
  for (int64_t i = first; i < last; ++i)
    after[i] = before[(i + count - 1) % count] + 3 * before[(i + 1) % count] + 1;
  return 0;
}

int64_t run_counts(Pool* pool, int64_t tiles, int max_threads, std::vector<int>& counts) {
  void* args[] = {counts.data()};
  const PhaseCall phase = {count_tiles, args, tiles, max_threads};
  return pool_run(pool, &phase, 1, nullptr, 0);
}

TEST(pool, runs_every_tile_once) {
  for (const int threads : {1, 2, 3, 8}) {
    const PoolPtr pool = make_pool(threads);
    ASSERT_NE(pool, nullptr);
    EXPECT_EQ(pool_num_threads(pool.get()), threads);
    for (const int64_t tiles : {0, 1, 2, 3, 7, 8, 9, 100, 1000}) {
      for (const int max_threads : {0, 1, 2}) {
        std::vector<int> counts(static_cast<size_t>(tiles));
        EXPECT_EQ(run_counts(pool.get(), tiles, max_threads, counts), 0);
        EXPECT_EQ(counts, std::vector<int>(static_cast<size_t>(tiles), 1))
            << tiles << " tiles, " << threads << " threads";
      }
    }
  }
}

TEST(pool, puts_a_barrier_between_phases) {
  constexpr int64_t kPhases = 2000;
  for (const int threads : {2, 3, 8}) {
    for (const int64_t spin_ns : {int64_t{0}, kDefaultSpin}) {
      const PoolPtr pool = make_pool(threads, spin_ns);
      int64_t tiles = 37;
      std::vector<uint64_t> a(static_cast<size_t>(tiles), 1);
      std::vector<uint64_t> b(static_cast<size_t>(tiles));
      std::vector<uint64_t> expected = a;
      std::vector<uint64_t> next = a;
      void* forth[] = {a.data(), b.data(), &tiles};
      void* back[] = {b.data(), a.data(), &tiles};
      std::vector<PhaseCall> phases;
      for (int64_t p = 0; p < kPhases; ++p) {
        // Every seventh phase is the caller's alone.
        phases.push_back({add_neighbours, p % 2 == 0 ? forth : back, tiles, p % 7 == 0 ? 1 : 0});
        void* args[] = {expected.data(), next.data(), &tiles};
        add_neighbours(args, nullptr, 0, tiles, 0);
        expected.swap(next);
      }
      ASSERT_EQ(pool_run(pool.get(), phases.data(), kPhases, nullptr, 0), 0);
      EXPECT_EQ(a, expected) << threads << " threads, spin " << spin_ns;
    }
  }
}

TEST(pool, wakes_workers_that_sleep) {
  const PoolPtr pool = make_pool(4, 0);
  for (int i = 0; i < 200; ++i) {
    if (i % 20 == 0) usleep(2000);  // long enough to fall asleep
    std::vector<int> counts(64);
    ASSERT_EQ(run_counts(pool.get(), 64, 0, counts), 0);
    ASSERT_EQ(counts, std::vector<int>(64, 1));
  }
}

// Every tile waits until another thread is inside the kernel too.
int meet(void* const* args, void*, int64_t, int64_t, int thread) {
  auto* seen = static_cast<std::atomic<int>*>(args[0]);
  seen[thread].store(1);
  const int64_t deadline = clock_ns() + 20'000'000'000;
  while (seen[1 - thread].load() == 0)
    if (clock_ns() > deadline) return 1;
  return 0;
}

TEST(pool, really_runs_in_parallel) {
  const PoolPtr pool = make_pool(2);
  for (int i = 0; i < 20; ++i) {
    std::atomic<int> seen[2] = {};
    void* args[] = {seen};
    const PhaseCall phase = {meet, args, 2, 0};
    ASSERT_EQ(pool_run(pool.get(), &phase, 1, nullptr, 0), 0) << "the second thread never came";
  }
}

int note_thread(void* const* args, void* scratch, int64_t, int64_t, int thread) {
  *static_cast<pthread_t*>(args[0]) = pthread_self();
  *static_cast<int*>(scratch) = thread + 1;
  return 0;
}

TEST(pool, runs_a_single_tile_on_the_caller) {
  const PoolPtr pool = make_pool(4);
  for (int i = 0; i < 100; ++i) {
    pthread_t runner{};
    int scratch[4] = {};
    void* args[] = {&runner};
    const PhaseCall phase = {note_thread, args, 1, 0};
    ASSERT_EQ(pool_run(pool.get(), &phase, 1, scratch, sizeof(int)), 0);
    EXPECT_NE(pthread_equal(runner, pthread_self()), 0);
    EXPECT_EQ(scratch[0], 1);
  }
}

int fill_scratch(void* const*, void* scratch, int64_t first, int64_t last, int thread) {
  auto* words = static_cast<int64_t*>(scratch);
  for (int i = 0; i < 64; ++i) words[i] = thread * 1000 + first;
  for (int i = 0; i < 64; ++i)
    if (words[i] != thread * 1000 + first) return 1;
  return last > first ? 0 : 2;
}

TEST(pool, gives_each_thread_its_own_scratch) {
  const PoolPtr pool = make_pool(4);
  std::vector<int64_t> scratch(4 * 64);
  const PhaseCall phase = {fill_scratch, nullptr, 1000, 0};
  for (int i = 0; i < 100; ++i)
    ASSERT_EQ(pool_run(pool.get(), &phase, 1, scratch.data(), 64 * sizeof(int64_t)), 0);
}

int fail_on_tile_5(void* const*, void*, int64_t first, int64_t last, int) {
  return first <= 5 && 5 < last ? 42 : 0;
}

TEST(pool, reports_a_failure_and_stops_behind_it) {
  for (const int threads : {1, 4}) {
    const PoolPtr pool = make_pool(threads);
    std::vector<int> counts(10);
    void* args[] = {counts.data()};
    const PhaseCall phases[] = {{fail_on_tile_5, nullptr, 16, 0}, {count_tiles, args, 10, 0}};
    EXPECT_EQ(pool_run(pool.get(), phases, 2, nullptr, 0), 42);
    EXPECT_EQ(counts, std::vector<int>(10, 0));
    EXPECT_EQ(pool_run(pool.get(), phases + 1, 1, nullptr, 0), 0) << "the failure must not stick";
    EXPECT_EQ(counts, std::vector<int>(10, 1));
  }
}

int add_range(void* const* args, void*, int64_t first, int64_t last, int) {
  static_cast<std::atomic<int64_t>*>(args[0])->fetch_add(last - first);
  return 0;
}

TEST(pool, deals_more_tiles_than_32_bits) {
  const PoolPtr pool = make_pool(3);
  const int64_t tiles = (int64_t{5} << 31) + 3;
  std::atomic<int64_t> total{0};
  void* args[] = {&total};
  const PhaseCall phase = {add_range, args, tiles, 0};
  EXPECT_EQ(pool_run(pool.get(), &phase, 1, nullptr, 0), 0);
  EXPECT_EQ(total.load(), tiles);
}

TEST(pool, several_run_at_once) {
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([c] {
      const PoolPtr pool = make_pool(1 + c);
      for (int i = 0; i < 300; ++i) {
        std::vector<int> counts(50);
        ASSERT_EQ(run_counts(pool.get(), 50, 0, counts), 0);
        ASSERT_EQ(counts, std::vector<int>(50, 1));
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(pool, starts_and_stops_often) {
  for (int i = 0; i < 200; ++i) {
    const PoolPtr pool = make_pool(1 + i % 5, i % 2 == 0 ? 0 : kDefaultSpin);
    ASSERT_NE(pool, nullptr);
    std::vector<int> counts(9);
    if (i % 3 != 0) {
      ASSERT_EQ(run_counts(pool.get(), 9, 0, counts), 0);
    }
  }
}

TEST(pool, works_in_a_forked_child) {
  const PoolPtr pool = make_pool(3);
  std::vector<int> counts(20);
  ASSERT_EQ(run_counts(pool.get(), 20, 0, counts), 0);
  const pid_t child = fork();
  if (child == 0) {
    // The workers are not there; the caller does their part.
    std::vector<int> mine(20);
    const bool ok = run_counts(pool.get(), 20, 0, mine) == 0 && mine == std::vector<int>(20, 1);
    pool_destroy(pool.get());
    _exit(ok ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  ASSERT_EQ(run_counts(pool.get(), 20, 0, counts), 0);
  EXPECT_EQ(counts, std::vector<int>(20, 2));
}

// How an owner's threads may run the tasks of a call.
void on_threads(void* calls, int count, PoolTask task, void* context) {
  *static_cast<int*>(calls) += 1;
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(task, context, i);
  for (std::thread& thread : threads) thread.join();
}
void backwards(void* calls, int count, PoolTask task, void* context) {
  *static_cast<int*>(calls) += 1;
  for (int i = count - 1; i >= 0; --i) task(context, i);
}
void not_at_all(void* calls, int, PoolTask, void*) { *static_cast<int*>(calls) += 1; }

TEST(pool, runs_on_its_owners_threads) {
  for (const ParallelFor run : {on_threads, backwards, not_at_all}) {
    int calls = 0;
    const PoolPtr pool(pool_create({.num_threads = 3, .parallel_for = run, .owner = &calls}),
                       pool_destroy);
    ASSERT_NE(pool, nullptr);
    EXPECT_EQ(pool_num_threads(pool.get()), 3);
    for (const int64_t tiles : {0, 1, 2, 3, 50, 1000}) {
      std::vector<int> counts(static_cast<size_t>(tiles));
      EXPECT_EQ(run_counts(pool.get(), tiles, 0, counts), 0);
      EXPECT_EQ(counts, std::vector<int>(static_cast<size_t>(tiles), 1));
    }
    EXPECT_EQ(calls, 4) << "a phase of no or one tile needs no other thread";
  }
}

// Phases that join; each tile of `counts` must be run once.
struct Joined {
  std::vector<std::vector<int>> counts;
  std::vector<void*> args;
  std::vector<PhaseCall> phases;

  void add(hone_kernel kernel, int64_t tiles, int units, bool joins = true) {
    counts.emplace_back(static_cast<size_t>(tiles));
    args.push_back(counts.back().data());
    phases.push_back({kernel, nullptr, tiles, 0, joins && !phases.empty(), units});
  }
  int run(Pool* pool, int64_t* times = nullptr) {
    for (size_t i = 0; i < phases.size(); ++i) phases[i].args = &args[i];
    for (std::vector<int>& of_phase : counts) std::fill(of_phase.begin(), of_phase.end(), 0);
    return pool_run(pool, phases.data(), static_cast<int64_t>(phases.size()), nullptr, 0, times);
  }
  [[nodiscard]] bool each_once() const {
    for (const std::vector<int>& of_phase : counts) {
      if (std::count(of_phase.begin(), of_phase.end(), 1) != std::ssize(of_phase)) return false;
    }
    return true;
  }
};

TEST(pool, phases_that_join_run_every_tile_once) {
  for (const int threads : {1, 2, 3, 8}) {
    const PoolPtr pool = make_pool(threads);
    for (const int64_t tiles : {0, 1, 2, 3, 7, 100, 1000}) {
      for (const int units : {1, 2, 5, 100, 70'000}) {
        Joined joined;
        joined.add(count_tiles, 1, units);
        joined.add(count_tiles, tiles, 13);
        joined.add(count_tiles, 5, 1);
        joined.add(count_tiles, tiles, units);
        EXPECT_EQ(joined.run(pool.get()), 0);
        EXPECT_TRUE(joined.each_once()) << threads << " threads, " << tiles << ", " << units;
      }
    }
  }
}

TEST(pool, more_threads_than_tiles_of_phases_that_join) {
  const PoolPtr pool = make_pool(16, 0);
  Joined joined;
  for (int i = 0; i < 3; ++i) joined.add(count_tiles, 1, 1 + 300 * i);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(joined.run(pool.get()), 0);
    ASSERT_TRUE(joined.each_once());
  }
}

// Each of two phases of one tile waits for the other.
int meet_other(void* const* args, void*, int64_t, int64_t, int) {
  auto* seen = static_cast<std::atomic<int>*>(args[0]);
  const int self = *static_cast<int*>(args[1]);
  seen[self].store(1);
  const int64_t deadline = clock_ns() + 20'000'000'000;
  while (seen[1 - self].load() == 0)
    if (clock_ns() > deadline) return 1;
  return 0;
}

TEST(pool, phases_of_one_tile_run_beside_each_other) {
  const PoolPtr pool = make_pool(2);
  for (int i = 0; i < 20; ++i) {
    std::atomic<int> seen[2] = {};
    int self[2] = {0, 1};
    void* first[] = {seen, &self[0]};
    void* second[] = {seen, &self[1]};
    const PhaseCall phases[] = {{meet_other, first, 1, 0, false, 64},
                                {meet_other, second, 1, 0, true, 64}};
    ASSERT_EQ(pool_run(pool.get(), phases, 2, nullptr, 0), 0) << "one waited for the other's end";
  }
}

// Phases that add neighbours again and again.
struct Chain {
  static constexpr int64_t kTiles = 37;
  int64_t tiles = kTiles;
  std::vector<uint64_t> here, there, expected;
  void* forth[3] = {};
  void* back[3] = {};

  explicit Chain(uint64_t start, int steps) : here(kTiles, start), there(kTiles), expected(here) {
    const auto fill = [&](void** args, std::vector<uint64_t>& from, std::vector<uint64_t>& to) {
      args[0] = from.data(), args[1] = to.data(), args[2] = &tiles;
    };
    for (int i = 0; i < steps; ++i) {
      fill(forth, expected, there);
      add_neighbours(forth, nullptr, 0, tiles, 0);
      expected.swap(there);
    }
    fill(forth, here, there);
    fill(back, there, here);
  }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;
};

TEST(pool, a_group_waits_for_the_one_before) {
  constexpr int kSteps = 2000;
  for (const int threads : {2, 3, 8}) {
    for (const int64_t spin_ns : {int64_t{0}, kDefaultSpin}) {
      const PoolPtr pool = make_pool(threads, spin_ns);
      // A step of the one beside a step of the other, of unlike work.
      Chain one(1, kSteps), other(2, kSteps);
      std::vector<PhaseCall> phases;
      for (int i = 0; i < kSteps; ++i) {
        const bool even = i % 2 == 0;
        phases.push_back(
            {add_neighbours, even ? one.forth : one.back, Chain::kTiles, 0, false, 1 + i % 50});
        phases.push_back(
            {add_neighbours, even ? other.forth : other.back, Chain::kTiles, 0, true, 1 + i % 3});
      }
      ASSERT_EQ(pool_run(pool.get(), phases.data(), std::ssize(phases), nullptr, 0), 0);
      EXPECT_EQ(one.here, one.expected) << threads << " threads, spin " << spin_ns;
      EXPECT_EQ(other.here, other.expected) << threads << " threads, spin " << spin_ns;
    }
  }
}

TEST(pool, a_failure_stops_behind_the_phases_that_join) {
  for (const int threads : {1, 2, 4}) {
    const PoolPtr pool = make_pool(threads);
    Joined joined;
    joined.add(count_tiles, 9, 20);
    joined.add(fail_on_tile_5, 16, 20);
    joined.add(count_tiles, 9, 20, false);
    joined.add(count_tiles, 9, 20);
    EXPECT_EQ(joined.run(pool.get()), 42);
    EXPECT_EQ(joined.counts[2], std::vector<int>(9, 0));
    EXPECT_EQ(joined.counts[3], std::vector<int>(9, 0));
    joined.phases[1].kernel = count_tiles;
    EXPECT_EQ(joined.run(pool.get()), 0) << "the failure must not stick";
    EXPECT_TRUE(joined.each_once());
  }
}

TEST(pool, phases_that_join_keep_their_limit_of_threads) {
  const PoolPtr pool = make_pool(4, 60'000'000'000);
  pthread_t runner{};
  int scratch[4 * 16] = {};
  void* args[] = {&runner};
  const PhaseCall phases[] = {{note_thread, args, 1, 0, false, 8},
                              {note_thread, args, 8, 1, true, 8}};
  ASSERT_EQ(pool_run(pool.get(), phases, 2, scratch, 16 * sizeof(int)), 0);
  EXPECT_NE(pthread_equal(runner, pthread_self()), 0);
  EXPECT_EQ(scratch[16], 0) << "thread 1 has no part";
}

TEST(pool, phases_that_join_run_on_the_owners_threads) {
  for (const ParallelFor run : {on_threads, backwards, not_at_all}) {
    int calls = 0;
    const PoolPtr pool(pool_create({.num_threads = 3, .parallel_for = run, .owner = &calls}),
                       pool_destroy);
    Joined joined;
    joined.add(count_tiles, 1, 7);
    joined.add(count_tiles, 40, 30);
    joined.add(count_tiles, 2, 1);
    EXPECT_EQ(joined.run(pool.get()), 0);
    EXPECT_TRUE(joined.each_once());
    EXPECT_EQ(calls, 1) << "one fork and join for all";
  }
}

TEST(pool, phases_that_join_run_in_a_forked_child) {
  const PoolPtr pool = make_pool(3);
  Joined joined;
  joined.add(count_tiles, 5, 9);
  joined.add(count_tiles, 20, 9);
  ASSERT_EQ(joined.run(pool.get()), 0);
  const pid_t child = fork();
  if (child == 0) _exit(joined.run(pool.get()) == 0 && joined.each_once() ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// Groups of all kinds, with threads that come late: each tile once, each group behind the last.
TEST(pool, random_groups_run_every_tile_once) {
  uint64_t state = 7;
  const auto below = [&](uint64_t limit) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<int>((state >> 33) % limit);
  };
  for (const int64_t spin_ns : {int64_t{0}, int64_t{2'000}, kDefaultSpin}) {
    const PoolPtr pool = make_pool(2 + below(5), spin_ns);
    for (int round = 0; round < 300; ++round) {
      Joined joined;
      for (int i = 1 + below(12); i > 0; --i)
        joined.add(count_tiles, below(4) == 0 ? 1 : below(60), 1 + below(200), below(3) != 0);
      ASSERT_EQ(joined.run(pool.get()), 0);
      ASSERT_TRUE(joined.each_once()) << "round " << round;
    }
  }
}

TEST(pool, a_profile_keeps_phases_apart) {
  const PoolPtr pool = make_pool(2);
  Joined joined;
  joined.add(count_tiles, 1, 5);
  joined.add(count_tiles, 10, 5);
  int64_t times[2] = {-1, -1};
  ASSERT_EQ(joined.run(pool.get(), times), 0);
  EXPECT_TRUE(joined.each_once());
  EXPECT_GE(times[0], 0);
  EXPECT_GE(times[1], 0);
}

// CPU time of the whole process while the calling thread sleeps.
double idle_cpu_seconds(double sleep_seconds) {
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::duration<double>(sleep_seconds));
  return static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
}

TEST(pool, spins_as_long_as_it_is_told) {
  std::vector<int> counts(100);
  const PoolPtr sleeper = make_pool(4, 0);
  EXPECT_EQ(run_counts(sleeper.get(), 100, 0, counts), 0);
  EXPECT_LT(idle_cpu_seconds(0.1), 0.05) << "three threads that spin would take far more";
  const PoolPtr spinner = make_pool(2, 60'000'000'000);
  EXPECT_EQ(run_counts(spinner.get(), 100, 0, counts), 0);
  double spun = 0;
  for (int i = 0; i < 100 && spun < 0.05; ++i) spun += idle_cpu_seconds(0.05);
  EXPECT_GE(spun, 0.05);
}

TEST(pool, times_its_phases) {
  const PoolPtr pool = make_pool(2);
  std::vector<int> counts(10);
  void* args[] = {counts.data()};
  const PhaseCall phases[] = {{count_tiles, args, 10, 0}, {count_tiles, args, 1, 0}};
  int64_t times[2] = {-1, -1};
  const int64_t start = clock_ns();
  ASSERT_EQ(pool_run(pool.get(), phases, 2, nullptr, 0, times), 0);
  EXPECT_GE(times[0], 0);
  EXPECT_GE(times[1], 0);
  EXPECT_LE(times[0] + times[1], clock_ns() - start);
}

}  // namespace
}  // namespace hone::runtime
