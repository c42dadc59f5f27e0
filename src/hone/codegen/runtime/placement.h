// codegen/runtime/placement.h - keeps the threads of a pool off the CPU that its caller runs on.
//
// A thread that is woken while the CPU on which it ran last is busy for a moment is put beside the
// caller by Linux (6.18), and stays there for milliseconds: both run at half their speed while the
// other CPU is idle. On two CPUs that was so in a sixth of the time (docs/studies/measuring.md).
// So the threads may run wherever the one that made the pool may, but for the caller's CPU. The
// caller itself stays free; where it moves, they make room.
#pragma once

#include <pthread.h>
#include <sched.h>

namespace hone::runtime {

inline constexpr int kMostPlaced = 16;

class Placement {
 public:
  // Before the threads are started. Nothing is done without a CPU for each thread, nor with so many
  // that to place them, some microseconds each, would cost more than it gains.
  void begin(int num_threads);
  // Whether the caller has moved since the threads were placed; some nanoseconds.
  [[nodiscard]] bool is_outdated() const { return on_ && sched_getcpu() != cpu_; }
  // From now on the threads that are placed leave out the CPU that the caller is on.
  void follow_caller();
  // A thread whose CPUs somebody else has chosen keeps them: false, and none is placed any more.
  [[nodiscard]] bool place(pthread_t thread);
  // A thread that was placed until then may run anywhere again.
  void release(pthread_t thread) const;
  void give_up() { on_ = false; }

 private:
  bool on_ = false;
  int cpu_ = -1;  // the caller's
  cpu_set_t all_{}, before_{}, now_{};
};

}  // namespace hone::runtime
