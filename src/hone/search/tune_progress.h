// search/tune_progress.h - the progress of a tuning run, for whoever watches it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hone/search/task_scheduler.h"
#include "hone/search/task_tuner.h"

namespace hone::search {

struct TaskProgress {
  std::string name;
  double multiplicity = 1;
  double untuned_seconds = 0;  // 0: not measured yet
  double best_seconds = 0;
  int trials = 0;
  double bound_seconds = 0;  // what no schedule is expected to beat
  double share = 0;          // share of the model's time
  double expected_gain = 0;  // share of the model's time that kGainSeconds more on it may save
  bool at_limit = false;     // it gets no more time
};
inline constexpr double kGainSeconds = 10;

struct TuneProgress {
  double elapsed = 0, budget = 0;  // seconds
  double left = 0;  // seconds until the time or the trials are spent, as it looks now
  int trials = 0;
  double trials_per_second = 0;
  int task = -1;                // task of the last batch
  std::string_view stage = {};  // the work after the search, in words; empty: the search goes on
  std::vector<TaskProgress> tasks;
};

// Returns the progress of each task. The scheduler must number the tasks in the same order.
[[nodiscard]] std::vector<TaskProgress> progress_of(
    std::span<const std::unique_ptr<TaskTuner>> tasks, const TaskScheduler& scheduler);

}  // namespace hone::search
