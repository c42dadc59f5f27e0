// search/incumbent.h - the best schedule of a task, as far as is known. It is timed again now and
// then, which shows how the machine drifts, and replaced only by one that beats it in a duel: a
// noisy machine promotes no loser.
//
// Seconds are on the task's scale: the speed of the machine at the moment when the task's first
// incumbent was measured (in this run or, if it comes from a store, in an earlier one). drift() is
// the time that the machine now takes for a second of that scale. Every later incumbent is timed
// against the first one after it was promoted: the winner of a duel seems a little faster than it
// is, and such errors must not add up over the promotions.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "hone/base/clock.h"
#include "hone/measure/runner.h"

namespace hone::search {

// Runs one job at once. Returns nullopt if it was cancelled. All earlier jobs of the runner must
// have been collected.
[[nodiscard]] Result<std::optional<measure::Measurement>> measure_now(measure::Runner& runner,
                                                                      measure::Job job);

struct Challenge {
  trial::Verdict verdict = trial::Verdict::kUndecided;
  double seconds = 0;  // seconds of the challenger; never less than the incumbent's unless it won
  measure::Measurement measurement;
};

class Incumbent {
 public:
  [[nodiscard]] bool known() const { return job_.has_value(); }
  [[nodiscard]] const measure::Job& job() const { return *job_; }
  // Returns its seconds when it was promoted, which are less than those of the incumbent that it
  // beat; infinity before the first.
  [[nodiscard]] double seconds() const { return seconds_; }
  // Returns the seconds that a candidate must seem to beat to be worth a duel: those when the
  // incumbent was promoted or, if they are more, when it was last timed against the first one.
  [[nodiscard]] double to_beat() const { return std::max(seconds_, held_); }
  // Returns the least seconds that are recorded of a candidate that did not beat it. They are never
  // as few as the incumbent's, so that a store has only one best.
  [[nodiscard]] double just_slower() const { return std::nextafter(seconds_, INFINITY); }
  [[nodiscard]] double drift() const { return drift_; }
  // Returns how many times slower the machine is than at the start of this run.
  [[nodiscard]] double slowdown() const { return drift_ / first_drift_; }
  // Returns the drift of the machine when it was least disturbed, at most 1. Seconds of two tasks
  // are multiplied by it before they are compared, as either scale may be that of a disturbed
  // moment.
  [[nodiscard]] double least_drift() const { return least_drift_; }
  // Returns the seconds that it takes now, as far as is known.
  [[nodiscard]] double seconds_now() const { return held_ * drift_; }

  // Installs the first incumbent. `reference` is its seconds in a store; if 0, the measured seconds
  // define the scale.
  void install(measure::Job job, double measured, double reference, double now);
  void count(int candidates) { since_ += candidates; }  // counts candidates that were measured
  [[nodiscard]] bool due(double now) const;
  // Times it again if that is due. All earlier jobs of the runner must have been collected. Returns
  // the measurement if the incumbent did not run.
  [[nodiscard]] Result<std::optional<measure::Measurement>> refresh(measure::Runner& runner,
                                                                    const Clock& clock);
  [[nodiscard]] Result<std::optional<measure::Measurement>> time_again(measure::Runner& runner,
                                                                       const Clock& clock);
  // Replaces an incumbent that does not run any more by a schedule whose seconds are known.
  void replace(measure::Job job, double seconds);
  // Runs the challenger and the incumbent alternately. The challenger replaces the incumbent if it
  // is faster with 95% confidence, all challenges so far considered.
  [[nodiscard]] Result<Challenge> challenge(const measure::Job& challenger, measure::Runner& runner,
                                            const trial::DuelOptions& duel = {});

 private:
  [[nodiscard]] int duels_to_win() const;
  // Times a newly promoted incumbent against the first one, and sets held_.
  [[nodiscard]] Status compare_with_first(measure::Runner& runner);

  std::optional<measure::Job> job_, first_;
  double seconds_ = std::numeric_limits<double>::infinity();
  double first_seconds_ = 0;  // seconds of first_, which define the scale
  double held_ = 0;  // seconds of job_ on the scale, as timed when it was promoted or after
  double drift_ = 1, first_drift_ = 1, least_drift_ = 1;
  bool stale_ = false;  // promoted, and not yet compared with the first one
  double timed_at_ = 0;
  int since_ = 0;
  int challenges_ = 0;  // number of challenges so far
};

}  // namespace hone::search
