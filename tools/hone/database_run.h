// tools/hone/database_run.h - what a database says of one device and number of threads, as a report
// shows it.
#pragma once

#include <string>

#include "hone/database.h"

#include "tuning_run.h"

namespace hone::tool {

// Reads the trials that match. Of several devices, numbers of threads or versions, it takes those
// with the most trials, and a note of the result says what was left out. It is an error if there is
// no trial.
[[nodiscard]] Result<TuningRun> database_run(const std::string& db, const TrialFilter& filter);

// Returns the limits of the run's device that the database has.
[[nodiscard]] Limits limits_of_run(const std::string& db, const TuningRun& run);

}  // namespace hone::tool
