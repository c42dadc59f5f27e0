// search/stored_trials.h - the stored records of a task, for a run that tunes it again.
#pragma once

#include "hone/db/trial_store.h"
#include "hone/search/task_context.h"
#include "hone/search/trusted_schedules.h"

namespace hone::search {

struct StoredTrials {
  std::vector<TrustedSchedules::Stored> best;  // fastest first
  // The points and seconds of the newest records whose schedules are points of the space, oldest
  // first. Infinity means a failure.
  std::vector<space::Point> points;
  std::vector<double> seconds;
  size_t records = 0;  // records of this version, whether their schedules are points or not
};

[[nodiscard]] Result<StoredTrials> read_stored_trials(db::TrialStore& store, uint64_t task,
                                                      const TaskContext& context,
                                                      const space::Space& space);

}  // namespace hone::search
