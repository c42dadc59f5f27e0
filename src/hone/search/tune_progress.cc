#include "hone/search/tune_progress.h"

#include <cmath>

#include "hone/compute/dag.h"

namespace hone::search {

std::vector<TaskProgress> progress_of(std::span<const std::unique_ptr<TaskTuner>> tasks,
                                      const TaskScheduler& scheduler) {
  const double whole = scheduler.total();
  std::vector<TaskProgress> lines;
  for (const std::unique_ptr<TaskTuner>& task : tasks) {
    const int i = static_cast<int>(lines.size());
    const double least_drift = task->incumbent().least_drift();
    TaskProgress line{task->task().name, task->task().multiplicity,
                      task->untuned_seconds() * least_drift, 0, task->trials()};
    if (std::isfinite(task->undisturbed_seconds())) line.best_seconds = task->undisturbed_seconds();
    line.bound_seconds = scheduler.bound(i);
    line.share = whole > 0 ? line.multiplicity * scheduler.best(i) / whole : 0;
    line.expected_gain = whole > 0 ? scheduler.gain_in(i, kGainSeconds) / whole : 0;
    line.at_limit = scheduler.at_limit(i);
    line.key = task->task().key;
    line.kernel_class = compute::kernel_class(*task->task().dag);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace hone::search
