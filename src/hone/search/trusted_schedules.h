// search/trusted_schedules.h - the schedules of a task that were good before this run: the best in
// the store, and the one to be beaten. One failure to run may be the machine's fault, so they are
// tried again; a schedule that computes something else, or twice did not run while others did, is
// trusted no more.
#pragma once

#include <unordered_set>
#include <utility>
#include <vector>

#include "hone/measure/runner.h"
#include "hone/search/candidate.h"

namespace hone::search {

// Returns whether a kernel crashed, took too long or was not loaded. A wrong answer does not count,
// as it is no accident of the machine.
[[nodiscard]] bool did_not_run(const measure::Measurement& measurement);

class TrustedSchedules {
 public:
  struct Stored {
    schedule::Steps steps;
    double seconds = 0;  // 0: they cannot be compared with this run's
  };

  void set_untuned(schedule::Steps steps) { untuned_ = std::move(steps); }
  // Adds a stored schedule. The best one must be added first.
  void add_stored(schedule::Steps steps, double seconds) {
    stored_.push_back({std::move(steps), seconds});
  }
  [[nodiscard]] const schedule::Steps& untuned() const { return untuned_; }
  [[nodiscard]] const std::vector<Stored>& stored() const { return stored_; }
  [[nodiscard]] bool contain(const schedule::Steps& steps) const;

  // Measures trusted schedules that did not run once more, and appends the results. As long as
  // nothing of the task runs, they wait for a later call.
  [[nodiscard]] Status try_again(std::vector<Candidate>& candidates,
                                 std::vector<measure::Measurement>& measurements, bool others_run,
                                 measure::Runner& runner);
  // Returns whether the measurement shows that the schedule must not be used, however good it was.
  [[nodiscard]] bool is_refuted(const schedule::Steps& steps,
                                const measure::Measurement& measurement) const;
  // Ends the trust in a schedule, which was right when it was stored, by another version or by
  // luck.
  void invalidate(const schedule::Steps& steps);
  [[nodiscard]] bool untuned_is_wrong() const { return untuned_is_wrong_; }

 private:
  schedule::Steps untuned_;
  std::vector<Stored> stored_;
  std::vector<Candidate> doubtful_;            // those that failed before anything else ran
  std::unordered_set<uint64_t> failed_twice_;  // hashes of steps
  bool untuned_is_wrong_ = false;
};

}  // namespace hone::search
