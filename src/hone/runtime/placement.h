// runtime/placement.h - keeps the threads of a pool off the CPU that its caller runs on.
//
// If a thread is woken while the CPU on which it last ran is busy for a moment, Linux (6.18) moves
// it to the caller's CPU and leaves it there for milliseconds: both run at half their speed while
// the other CPU is idle. On two CPUs this was so in a sixth of the time
// (docs/studies/measuring.md). So the threads may run on all CPUs of the thread that made the pool,
// except the caller's current one. The caller itself is not restricted; when it moves, the threads
// are moved away.
#pragma once

#include <pthread.h>
#include <sched.h>

namespace hone::runtime {

inline constexpr int kMostPlaced = 16;

class Placement {
 public:
  // Called before the threads are started. It does nothing if there are fewer CPUs than threads, or
  // so many threads that placing them, at some microseconds each, would cost more than it gains.
  void begin(int num_threads);
  // Returns whether the caller has moved since the threads were placed. This takes some
  // nanoseconds.
  [[nodiscard]] bool is_outdated() const { return on_ && sched_getcpu() != cpu_; }
  // Makes later calls of place() leave out the CPU that the caller is on now.
  void follow_caller();
  // Restricts a thread to these CPUs. If somebody else has chosen the thread's CPUs, it keeps them,
  // and place() returns false; no more threads are then placed.
  [[nodiscard]] bool place(pthread_t thread);
  // Lets a thread that was placed run anywhere again.
  void release(pthread_t thread) const;

 private:
  bool on_ = false;
  int cpu_ = -1;  // CPU of the caller
  cpu_set_t all_{}, before_{}, now_{};
};

}  // namespace hone::runtime
