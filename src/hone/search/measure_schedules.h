// search/measure_schedules.h - measures given schedules of one task in turns, without a search.
#pragma once

#include <span>
#include <vector>

#include "hone/base/thread_pool.h"
#include "hone/measure/runner.h"
#include "hone/search/task_tuner.h"

namespace hone::search {

// Returns the least of `rounds` times of each schedule, or infinity for one that fails or computes
// something wrong. `tuner` must be open. Equal schedules are measured once.
[[nodiscard]] Result<std::vector<double>> measure_schedules(
    TaskTuner& tuner, measure::Runner& runner, std::span<const schedule::Steps> schedules,
    int rounds, ThreadPool& pool);

}  // namespace hone::search
