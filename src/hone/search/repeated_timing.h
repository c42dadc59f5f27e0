// search/repeated_timing.h - times for a data set: every kernel is timed in two passes, some
// moments apart, and again where their fastest samples differ, so that what disturbs the machine
// for a while does not look like a slow schedule.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "hone/measure/job.h"

namespace hone::search {

// Fastest samples of two passes that differ by more say that one of them was disturbed.
inline constexpr double kPassesAgree = 1.04;
inline constexpr int kMaxPasses = 4;
// Kernels so many times as slow as the reference are timed once: nobody asks how slow exactly.
inline constexpr double kSlowOnce = 4;

// Runs jobs and returns their answers, in order; fewer: it was cancelled.
using Execute = std::function<Result<std::vector<measure::Measurement>>(std::vector<measure::Job>)>;

// One measurement of each job with the samples of all its passes; none if it was cancelled.
// `reference`: seconds of a schedule to be expected of the task; 0: unknown.
[[nodiscard]] Result<std::vector<measure::Measurement>> time_repeatedly(
    std::span<const measure::Job> jobs, double reference, const Execute& execute);

// Its fastest sample: what disturbs a machine only adds. Infinity if it is not ok.
[[nodiscard]] double fastest(const measure::Measurement& measurement);

}  // namespace hone::search
