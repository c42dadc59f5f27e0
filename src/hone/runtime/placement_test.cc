#include "hone/runtime/placement.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "hone/runtime/pool_testing.h"

namespace hone::runtime {
namespace {

std::vector<int> cpus_of(pthread_t thread) {
  cpu_set_t set;
  EXPECT_EQ(pthread_getaffinity_np(thread, sizeof set, &set), 0);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

void allow(pthread_t thread, const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  ASSERT_EQ(pthread_setaffinity_np(thread, sizeof set, &set), 0);
}

std::vector<int> without(std::vector<int> cpus, int cpu) {
  std::erase(cpus, cpu);
  return cpus;
}

// args: handles of both threads, and who is there.
int note_both(void* const* args, void*, int64_t, int64_t, int thread) {
  static_cast<pthread_t*>(args[0])[thread] = pthread_self();
  return meet_other(static_cast<std::atomic<int>*>(args[1]), thread);
}

// Two threads of a pool, of which this one is the caller.
class PoolPlacement : public testing::Test {
 protected:
  void SetUp() override {
    all_ = cpus_of(pthread_self());
    if (all_.size() < 2) GTEST_SKIP() << "there is one CPU only";
    pool_ = make_pool(2);
    ASSERT_NE(pool_, nullptr);
    run();
  }
  void TearDown() override { allow(pthread_self(), all_); }

  void run() {
    std::atomic<int> seen[2] = {0, 0};
    void* args[] = {threads_, seen};
    const PhaseCall phase = {note_both, args, 2, 0};
    ASSERT_EQ(pool_run(pool_.get(), &phase, 1, nullptr, 0), 0);
  }
  void move_to(int cpu) {
    allow(pthread_self(), {cpu});
    run();
  }

  std::vector<int> all_;
  PoolPtr pool_{nullptr, pool_destroy};
  pthread_t threads_[2] = {};
};

TEST_F(PoolPlacement, threads_make_room_for_the_caller) {
  for (const int cpu : {all_[0], all_[1], all_[0]}) {
    move_to(cpu);
    EXPECT_EQ(cpus_of(threads_[1]), without(all_, cpu));
    EXPECT_EQ(cpus_of(pthread_self()), std::vector<int>{cpu}) << "the caller's are its own affair";
  }
}

TEST_F(PoolPlacement, leaves_threads_where_somebody_else_has_put_them) {
  move_to(all_[0]);
  allow(threads_[1], {all_[0]});
  move_to(all_[1]);
  EXPECT_EQ(cpus_of(threads_[1]), std::vector<int>{all_[0]});
  move_to(all_[0]);
  EXPECT_EQ(cpus_of(threads_[1]), std::vector<int>{all_[0]});
}

// A placed thread that waits, to be moved by hand.
struct Waiting {
  std::atomic<bool> done{false};
  std::thread thread{[this] {
    while (!done.load()) std::this_thread::yield();
  }};
  ~Waiting() {
    done.store(true);
    thread.join();
  }
  pthread_t handle() { return thread.native_handle(); }
};

TEST_F(PoolPlacement, who_was_placed_before_it_gave_up_may_run_anywhere_again) {
  Placement placement;
  placement.begin(2);
  Waiting placed, foreign;
  allow(pthread_self(), {all_[0]});
  placement.follow_caller();
  EXPECT_TRUE(placement.place(placed.handle()));
  EXPECT_EQ(cpus_of(placed.handle()), without(all_, all_[0]));
  allow(foreign.handle(), {all_[0]});
  EXPECT_FALSE(placement.place(foreign.handle()));
  EXPECT_FALSE(placement.is_outdated());
  placement.release(placed.handle());
  EXPECT_EQ(cpus_of(foreign.handle()), std::vector<int>{all_[0]});
  EXPECT_EQ(cpus_of(placed.handle()), all_);
}

TEST_F(PoolPlacement, more_threads_than_cpus_are_not_placed) {
  const int threads = static_cast<int>(all_.size()) + 1;
  pool_ = make_pool(threads);
  run();
  EXPECT_EQ(cpus_of(threads_[1]), all_);
}

// Its threads are not there: it works alone, and leaves its parent's where they are.
TEST_F(PoolPlacement, a_forked_child_moves_no_thread_of_its_parent) {
  move_to(all_[0]);
  const pid_t child = fork();
  if (child == 0) {
    int ran[2] = {};
    void* args[] = {ran};
    const PhaseCall phase = {count_tiles, args, 2, 0};
    allow(pthread_self(), {all_[1]});
    const int result = pool_run(pool_.get(), &phase, 1, nullptr, 0);
    _exit(result == 0 && ran[0] == 1 && ran[1] == 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(cpus_of(threads_[1]), without(all_, all_[0]));
}

}  // namespace
}  // namespace hone::runtime
