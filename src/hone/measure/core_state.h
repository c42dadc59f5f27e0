// measure/core_state.h - checks whether each thread of a run has a core of its own, close to the
// others'.
//
// A virtual machine's CPUs are sometimes hardware threads of one core, or cores that do not share
// the cache that they usually share, for seconds to minutes. The guest cannot see this, and a time
// of several threads that is measured then is that of another machine: arithmetic runs at half the
// rate, or lines that another thread wrote arrive at a quarter of it (docs/studies/measuring.md,
// "Two threads on one core"). It shows in the rate of arithmetic, and in the time of a cache line
// to another thread and back.
#pragma once

#include <atomic>
#include <functional>
#include <span>

#include "hone/base/clock.h"

namespace hone::measure {

struct CoreState {
  // Factor by which a thread's arithmetic is slower while the others compute, too.
  double slowdown = 1;
  // Seconds for a cache line to the farthest thread and back; 0 for one thread.
  double exchange = 0;
};
// Measures the state with a thread on each of these CPUs, one per core (target::cpus_of_cores()).
// It takes about a millisecond for two, more for more. If threads cannot be bound to them, the
// state is that of one thread.
[[nodiscard]] CoreState look_at_cores(std::span<const int> cpus);
// Returns whether each thread has a core: it is as fast as alone, except for the clock, which falls
// if more cores are active.
[[nodiscard]] bool have_cores(const CoreState& state);
// Returns whether the cores are as close to each other as they were ever seen. `nearest` is the
// least exchange of such cores so far (0 before any was seen) and is updated.
[[nodiscard]] bool are_good(const CoreState& state, double& nearest);

inline constexpr double kUsualPatience = 0.05;  // share of the time for measuring

// The state of the cores compared with that at earlier looks of the watch.
enum class CoreChange {
  // Threads do not have a core each, or the cores are twice as far apart as before: another
  // machine.
  kWorse,
  kNone,    // the cores are as good as before
  kNearer,  // at most half as far apart: earlier measurements were on another machine
};

// Waits for cores that are as good as before, until its patience is used up in all. On a machine
// where threads never have a core each, that happens once.
class CoreWatch {
 public:
  using Look = std::function<CoreState()>;
  struct Options {
    double patience = 0;  // limit of all waits together in seconds
    const std::atomic<bool>* interrupted = nullptr;
  };
  // Watches for `threads` threads of this machine. It never waits for one thread, or for more than
  // there are cores.
  CoreWatch(int threads, const Options& options);
  CoreWatch(Look look, Clock& clock, const Options& options);

  // Returns once the cores are good, the patience is used up, or the clock reaches `deadline`.
  // Returns the seconds that it waited.
  double wait(double deadline);
  // Looks once, without waiting. For one thread, or more than there are cores, the result is kNone.
  CoreChange look();
  [[nodiscard]] double waited() const { return waited_; }  // seconds in all

 private:
  Look look_;  // empty if there is nothing to wait for
  Clock& clock_;
  Options options_;
  double nearest_ = 0;  // as in are_good()
  double waited_ = 0;
};
// Returns a look at so many threads of this machine, each on a core of its own; an empty one for a
// single thread and for more than there are cores.
[[nodiscard]] CoreWatch::Look look_at_threads(int threads);

}  // namespace hone::measure
