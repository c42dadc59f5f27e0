// Phases that join: several of them in one fork and join.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "hone/runtime/pool_testing.h"

namespace hone::runtime {
namespace {

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
int meet_phase(void* const* args, void*, int64_t, int64_t, int) {
  return meet_other(static_cast<std::atomic<int>*>(args[0]), *static_cast<int*>(args[1]));
}

TEST(pool, phases_of_one_tile_run_beside_each_other) {
  const PoolPtr pool = make_pool(2);
  for (int i = 0; i < 20; ++i) {
    std::atomic<int> seen[2] = {};
    int self[2] = {0, 1};
    void* first[] = {seen, &self[0]};
    void* second[] = {seen, &self[1]};
    const PhaseCall phases[] = {{meet_phase, first, 1, 0, false, 64},
                                {meet_phase, second, 1, 0, true, 64}};
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

}  // namespace
}  // namespace hone::runtime
