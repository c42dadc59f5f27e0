// search/repeated_timing.h - times for a data set: every kernel is timed in two passes, some
// moments apart, and again where their fastest samples differ, so that what disturbs the machine
// for a while does not look like a slow schedule.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "hone/measure/job.h"

namespace hone::search {

// If the fastest samples of two passes differ by a larger factor, one of the passes was disturbed.
inline constexpr double kPassesAgree = 1.04;
inline constexpr int kMaxPasses = 4;
// Kernels that are slower than the reference by a larger factor are timed once, as nobody asks how
// slow they are exactly.
inline constexpr double kSlowOnce = 4;

// Runs jobs and returns their answers, in order; fewer answers mean that it was cancelled.
using Execute = std::function<Result<std::vector<measure::Measurement>>(std::vector<measure::Job>)>;

// Returns one measurement of each job with the samples of all its passes, or none if it was
// cancelled. `reference` is the expected seconds of a schedule of the task; 0 if unknown.
[[nodiscard]] Result<std::vector<measure::Measurement>> time_repeatedly(
    std::span<const measure::Job> jobs, double reference, const Execute& execute);

// Returns the fastest sample, as disturbances of a machine only add time; infinity if the outcome
// is not ok.
[[nodiscard]] double fastest(const measure::Measurement& measurement);

}  // namespace hone::search
