// search/trial_keeper.h - keeps what a run of tuning measures in a store, and counts what failed.
// After the store's first failure nothing more is kept.
#pragma once

#include <map>
#include <string>

#include "hone/db/trial_store.h"
#include "hone/search/task_tuner.h"

namespace hone::search {

// The schedules of one outcome that could not be measured.
struct Failures {
  int count = 0;
  std::string first;  // why the first one failed
};

class TrialKeeper {
 public:
  // If `store` is null, nothing is kept, but failures are counted.
  explicit TrialKeeper(db::TrialStore* store) : store_(store) {}
  void keep(const Findings& findings);
  [[nodiscard]] const Status& status() const { return status_; }  // the store's first failure
  [[nodiscard]] const std::map<trial::Outcome, Failures>& failures() const { return failures_; }

 private:
  [[nodiscard]] Status store(const Findings& findings);
  [[nodiscard]] Status invalidate(const trial::Record& bad);

  db::TrialStore* store_;
  Status status_ = ok_status();
  std::map<trial::Outcome, Failures> failures_;
};

}  // namespace hone::search
