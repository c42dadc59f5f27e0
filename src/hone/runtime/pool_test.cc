#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "hone/runtime/pool_testing.h"

namespace hone::runtime {
namespace {

int64_t run_counts(Pool* pool, int64_t tiles, int max_threads, std::vector<int>& counts) {
  void* args[] = {counts.data()};
  const PhaseCall phase = {count_tiles, args, tiles, max_threads};
  return pool_run(pool, &phase, 1, nullptr, 0);
}

TEST(pool, runs_every_tile_once) {
  for (const int threads : {1, 2, 3, 7, 8, 64}) {
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
  for (const int threads : {2, 3, 7, 8, 64}) {
    const int64_t num_phases = threads > 8 ? 100 : 2000;
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
      for (int64_t p = 0; p < num_phases; ++p) {
        // Every seventh phase is the caller's alone.
        phases.push_back({add_neighbours, p % 2 == 0 ? forth : back, tiles, p % 7 == 0 ? 1 : 0});
        void* args[] = {expected.data(), next.data(), &tiles};
        add_neighbours(args, nullptr, 0, tiles, 0);
        expected.swap(next);
      }
      ASSERT_EQ(pool_run(pool.get(), phases.data(), num_phases, nullptr, 0), 0);
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
  return meet_other(static_cast<std::atomic<int>*>(args[0]), thread);
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

// A tile forks while others wait: what the child finds is the state of the run that was on.
struct ForkedRun {
  Pool* pool;
  std::atomic<int> waiting{0};
  std::atomic<pid_t> child{-1};
};
int fork_on_tile_0(void* const* args, void*, int64_t first, int64_t last, int) {
  auto& run = *static_cast<ForkedRun*>(args[0]);
  if (first > 0) {
    ++run.waiting;
    while (run.child < 0) std::this_thread::yield();
    return 0;
  }
  while (run.waiting == 0 && last < 8) std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) {
    bool right = true;
    for (const int limit : {0, 2, 1}) {  // fewer threads leave the shares of the others as they are
      std::vector<int> mine(50);
      right =
          right && run_counts(run.pool, 50, limit, mine) == 0 && mine == std::vector<int>(50, 1);
    }
    _exit(right ? 0 : 1);
  }
  run.child = child;
  return 0;
}

TEST(pool, works_in_a_child_that_was_forked_while_phases_ran) {
  for (const bool owned : {false, true}) {
    int calls = 0;
    const PoolPtr pool(
        pool_create(owned
                        ? PoolOptions{.num_threads = 4, .parallel_for = on_threads, .owner = &calls}
                        : PoolOptions{.num_threads = 4}),
        pool_destroy);
    ForkedRun run{pool.get()};
    void* args[] = {&run};
    const PhaseCall phase{.kernel = fork_on_tile_0, .args = args, .num_tiles = 8, .max_threads = 0};
    ASSERT_EQ(pool_run(pool.get(), &phase, 1, nullptr, 0), 0);
    int status = -1;
    ASSERT_EQ(waitpid(run.child, &status, 0), run.child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << (owned ? "owned" : "own");
  }
}

TEST(pool, runs_on_its_owners_threads) {
  for (const int threads : {3, 7, 64}) {
    for (const ParallelFor run : {on_threads, backwards, not_at_all}) {
      int calls = 0;
      const PoolPtr pool(
          pool_create({.num_threads = threads, .parallel_for = run, .owner = &calls}),
          pool_destroy);
      ASSERT_NE(pool, nullptr);
      EXPECT_EQ(pool_num_threads(pool.get()), threads);
      for (const int64_t tiles : {0, 1, 2, 3, 50, 1000}) {
        std::vector<int> counts(static_cast<size_t>(tiles));
        EXPECT_EQ(run_counts(pool.get(), tiles, 0, counts), 0);
        EXPECT_EQ(counts, std::vector<int>(static_cast<size_t>(tiles), 1));
      }
      EXPECT_EQ(calls, 4) << "a phase of no or one tile needs no other thread";
    }
  }
}

std::set<std::string> threads_of_process() {
  std::set<std::string> threads;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    threads.insert(entry.path());
  return threads;
}

// Returns how often threads of this process have gone to sleep, once they are all asleep; -1 if
// they never are.
int64_t sleeps_of(const std::set<std::string>& threads) {
  for (int wait = 0; wait < 4000; ++wait) {
    int64_t sleeps = 0;
    bool asleep = true;
    for (const std::string& thread : threads) {
      std::ifstream status(thread + "/status");
      for (std::string word; status >> word;) {
        if (word == "State:") asleep = asleep && (status >> word) && word == "S";
        int64_t count = 0;
        if (word == "voluntary_ctxt_switches:" && status >> count) sleeps += count;
      }
    }
    if (asleep) return sleeps;
    usleep(5000);
  }
  return -1;
}

TEST(pool, a_phase_for_one_thread_wakes_nobody) {
  const std::set<std::string> before = threads_of_process();
  const PoolPtr pool = make_pool(4, 0);
  std::set<std::string> workers;
  for (const std::string& thread : threads_of_process()) {
    if (!before.contains(thread)) workers.insert(thread);
  }
  ASSERT_EQ(workers.size(), 3);
  const int64_t start = sleeps_of(workers);
  ASSERT_GE(start, 3);
  std::vector<int> counts(64);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(run_counts(pool.get(), 64, 1, counts), 0);  // too small for threads
    ASSERT_EQ(run_counts(pool.get(), 1, 0, counts), 0);   // a single tile
  }
  EXPECT_EQ(sleeps_of(workers), start) << "a thread was woken";
  // That a thread that is woken would have been seen: here one is needed.
  std::atomic<int> seen[2] = {};
  void* args[] = {seen};
  const PhaseCall phase = {meet, args, 2, 2};
  ASSERT_EQ(pool_run(pool.get(), &phase, 1, nullptr, 0), 0);
  EXPECT_GT(sleeps_of(workers), start);
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
