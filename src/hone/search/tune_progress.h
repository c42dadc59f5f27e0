// search/tune_progress.h - makes the progress of a tuning run (hone/progress.h).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "hone/progress.h"
#include "hone/search/task_tuner.h"
#include "hone/task_scheduler.h"

namespace hone::search {

// Returns the progress of each task. The scheduler must number the tasks in the same order.
[[nodiscard]] std::vector<TaskProgress> progress_of(
    std::span<const std::unique_ptr<TaskTuner>> tasks, const TaskScheduler& scheduler);

}  // namespace hone::search
