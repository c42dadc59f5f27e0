// search/incumbent.h - the best schedule of a task, as far as is known. It is timed again now and
// then, which shows how the machine drifts, and replaced only by one that beats it in a duel: a
// noisy machine crowns no loser.
//
// Seconds are on the task's scale: of the moment when its first incumbent was measured (in this run
// or, if that comes from a store, in an earlier one). drift() is what the machine takes now, in
// seconds of that scale. It is told by the first incumbent, against which every later one is timed
// when it was crowned: who wins a duel seems a little faster than it is, and such errors must not
// add up over the crownings.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "hone/base/clock.h"
#include "hone/measure/runner.h"

namespace hone::search {

// One job, at once; nothing if it was cancelled. What the runner holds has been collected.
[[nodiscard]] Result<std::optional<measure::Measurement>> measure_now(measure::Runner& runner,
                                                                      measure::Job job);

struct Challenge {
  trial::Verdict verdict = trial::Verdict::kUndecided;
  double seconds = 0;  // of the challenger; never less than the incumbent's unless it won
  measure::Measurement measurement;
};

class Incumbent {
 public:
  [[nodiscard]] bool known() const { return job_.has_value(); }
  [[nodiscard]] const measure::Job& job() const { return *job_; }
  // As it was crowned, so less than of all before it; infinity before the first.
  [[nodiscard]] double seconds() const { return seconds_; }
  // What a candidate must seem to beat to be worth a duel: as it was timed since, if that is more.
  [[nodiscard]] double to_beat() const { return std::max(seconds_, held_); }
  // What is recorded of one that did not beat it: never as fast, so a store names one best alone.
  [[nodiscard]] double just_slower() const { return std::nextafter(seconds_, INFINITY); }
  [[nodiscard]] double drift() const { return drift_; }
  // How much slower the machine is than at the start of this run.
  [[nodiscard]] double slowdown() const { return drift_ / first_drift_; }
  // The machine at its least disturbed, in seconds of the scale; at most 1. Seconds of two tasks
  // are compared after multiplying with it: either scale may be of a disturbed moment.
  [[nodiscard]] double quiet() const { return quiet_; }
  // Seconds that it takes now, as far as is known.
  [[nodiscard]] double seconds_now() const { return held_ * drift_; }

  // The first one. `reference`: its seconds in a store; 0: what was measured is the scale.
  void install(measure::Job job, double measured, double reference, double now);
  void count(int candidates) { since_ += candidates; }  // that were measured
  [[nodiscard]] bool due(double now) const;
  // Times it again if that is due; what the runner holds is collected. Returns what was measured if
  // it did not run.
  [[nodiscard]] Result<std::optional<measure::Measurement>> refresh(measure::Runner& runner,
                                                                    const Clock& clock);
  [[nodiscard]] Result<std::optional<measure::Measurement>> time_again(measure::Runner& runner,
                                                                       const Clock& clock);
  // It does not run any more: another one, whose seconds are known, takes its place.
  void replace(measure::Job job, double seconds);
  // Runs both in turns. The challenger replaces the incumbent if it is faster with 95% confidence,
  // all challenges so far considered.
  [[nodiscard]] Result<Challenge> challenge(const measure::Job& challenger, measure::Runner& runner,
                                            const trial::DuelOptions& duel = {});

 private:
  [[nodiscard]] int duels_to_win() const;
  // Sets held_, after it was crowned.
  [[nodiscard]] Status compare_with_first(measure::Runner& runner);

  std::optional<measure::Job> job_, first_;
  double seconds_ = std::numeric_limits<double>::infinity();
  double first_seconds_ = 0;  // of first_: the scale
  double held_ = 0;           // of job_ on the scale, as it was timed when it was crowned or after
  double drift_ = 1, first_drift_ = 1, quiet_ = 1;
  bool stale_ = false;  // crowned, and not yet compared with the first one
  double timed_at_ = 0;
  int since_ = 0;
  int challenges_ = 0;  // so far
};

}  // namespace hone::search
