// measure/core_state.h - whether the threads of a run have a core each, near each other.
//
// A virtual machine's CPUs are at times the hardware threads of one core, or cores that do not
// share the cache that they usually share, for seconds to minutes. Nothing in the guest says so,
// and a figure of several threads measured then is one of another machine: arithmetic at half the
// rate, or lines that another thread wrote at a quarter of it (docs/studies/measuring.md, "Two
// threads on one core"). Arithmetic and the way of a cache line to another thread and back tell.
#pragma once

#include <atomic>
#include <functional>
#include <span>

#include "hone/base/clock.h"

namespace hone::measure {

struct CoreState {
  double slowdown = 1;  // of a thread's arithmetic by that of the others, at once
  double exchange = 0;  // seconds for a line to the farthest thread and back; 0: a thread alone
};
// A thread on each of these CPUs, one a core (target::cpus_of_cores()); about a millisecond for
// two, more for more. Where threads cannot be put onto them the state is that of one thread.
[[nodiscard]] CoreState look_at_cores(std::span<const int> cpus);
// Whether each thread has a core: as fast as alone but for the clock, which falls with more cores.
[[nodiscard]] bool have_cores(const CoreState& state);
// Whether each has one as near to the others as they were ever seen. `nearest`: the least exchange
// of such cores so far, 0 before any was seen; it is brought up to date.
[[nodiscard]] bool are_good(const CoreState& state, double& nearest);

inline constexpr double kUsualPatience = 0.05;  // of the time that measuring has

// How cores are, beside how they were at the watch's looks before.
enum class CoreChange {
  kWorse,   // they do not serve a thread each, or are twice as far apart as they were: another
            // machine
  kNone,    // as good as they were
  kNearer,  // at most half as far apart: what was measured before was measured on another machine
};

// Waits for cores as good as they were, no longer in all than its patience lasts: on a machine
// where threads never have a core each, that is once.
class CoreWatch {
 public:
  using Look = std::function<CoreState()>;
  struct Options {
    double patience = 0;  // seconds, of all waits together
    const std::atomic<bool>* interrupted = nullptr;
  };
  // Of so many threads of this machine; never waits for one, or for more than there are cores.
  CoreWatch(int threads, const Options& options);
  CoreWatch(Look look, Clock& clock, const Options& options);

  // Returns once they are good, the patience is used up, or the clock says `deadline`: the seconds
  // that it took.
  double wait(double deadline);
  // Looks once, without waiting. Of one thread, or of more than there are cores: kNone.
  CoreChange look();
  [[nodiscard]] double waited() const { return waited_; }  // seconds, in all

 private:
  Look look_;  // empty: there is nothing to wait for
  Clock& clock_;
  Options options_;
  double nearest_ = 0;  // as are_good() has it
  double waited_ = 0;
};

}  // namespace hone::measure
