// search/incumbent.h - the best schedule of a task, as far as is known. It is timed again now and
// then, which shows how the machine drifts, and replaced only by one that beats it in a duel: a
// noisy machine crowns no loser.
//
// Seconds are on the task's scale: of the moment when its first incumbent was measured (in this run
// or, if that comes from a store, in an earlier one). drift() is what the machine takes now, in
// seconds of that scale.
#pragma once

#include <cmath>
#include <limits>
#include <optional>

#include "hone/base/clock.h"
#include "hone/measure/runner.h"

namespace hone::search {

struct Challenge {
  measure::Verdict verdict = measure::Verdict::kUndecided;
  double seconds = 0;  // of the challenger; never less than the incumbent's unless it won
  measure::Measurement measurement;
};

class Incumbent {
 public:
  [[nodiscard]] bool known() const { return job_.has_value(); }
  [[nodiscard]] const measure::Job& job() const { return *job_; }
  [[nodiscard]] double seconds() const { return seconds_; }  // infinity before the first
  // What is recorded of one that did not beat it: never as fast, so a store names one best alone.
  [[nodiscard]] double just_slower() const { return std::nextafter(seconds_, INFINITY); }
  [[nodiscard]] double drift() const { return drift_; }
  // How much slower the machine is than at the start of this run.
  [[nodiscard]] double slowdown() const { return drift_ / first_drift_; }
  // The machine at its least disturbed, in seconds of the scale; at most 1. Seconds of two tasks
  // are compared after multiplying with it: either scale may be of a disturbed moment.
  [[nodiscard]] double quiet() const { return quiet_; }
  // Seconds that it takes now, as far as is known.
  [[nodiscard]] double seconds_now() const { return seconds_ * drift_; }

  // The first one. `reference`: its seconds in a store; 0: what was measured is the scale.
  void install(measure::Job job, double measured, double reference, double now);
  void count(int candidates) { since_ += candidates; }  // that were measured
  [[nodiscard]] bool due(double now) const;
  // Times it again if that is due; what the runner holds is collected.
  [[nodiscard]] Status refresh(measure::Runner& runner, const Clock& clock);
  // Runs both in turns. The challenger replaces the incumbent if it is faster with 95% confidence,
  // all challenges so far considered.
  [[nodiscard]] Result<Challenge> challenge(const measure::Job& challenger, measure::Runner& runner,
                                            const measure::DuelOptions& duel = {});

 private:
  [[nodiscard]] int duels_to_win() const;

  std::optional<measure::Job> job_;
  double seconds_ = std::numeric_limits<double>::infinity();
  double drift_ = 1, first_drift_ = 1, quiet_ = 1;
  bool stale_ = false;  // the drift is another incumbent's
  double timed_at_ = 0;
  int since_ = 0;
  int challenges_ = 0;  // so far
};

}  // namespace hone::search
