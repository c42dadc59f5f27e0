// measure_sizes.h - measures schedules of a tuned model's kernels in runs of smaller sizes, so that
// the schedules for these sizes are chosen by times and not by predictions (internal).
#pragma once

#include <functional>

#include "hone/commands/tuned_schedules.h"
#include "hone/measure/runner.h"
#include "hone/session/assemble_limited.h"
#include "hone/tune.h"

namespace hone {

// The share of a budget that this takes at most.
inline constexpr double kSizesShare = 0.2;

struct MeasureSizesOptions {
  double deadline = 0;  // on real_clock()
  const search::TaskContext* context = nullptr;
  measure::Runner* runner = nullptr;
  // Takes the records of a kernel, which the session has by then.
  std::function<void(std::span<const trial::Record>)> keep;
};

// Measures kernel by kernel until the deadline, those that take most of the model's time first:
// their schedules, the next best of the search, and those that are predicted to be good at a
// smaller size (session/size_trials.h). Each runs at all sizes that are measured, and its result is
// checked at the largest. The times are in the session afterwards, where libraries find them.
[[nodiscard]] Status measure_sizes(const ModelTasks& model,
                                   std::span<const schedule::Steps> schedules,
                                   const TunedByKey& tuned, const CompileOptions& compile,
                                   const MeasureSizesOptions& options, SizesSummary& summary);

// A task of a model that is tuned alone.
struct TaskAlone {
  size_t group = 0;                      // its index in the model
  schedule::Steps own;                   // its schedule
  std::vector<schedule::Steps> next;     // the next best of the search
  const ScheduleTimes* times = nullptr;  // what was measured of it at some sizes
};
// Measures the kernels of one task likewise, unless its schedule was measured at all their sizes.
// `limited` is the model with any schedules of the other tasks; that of this one is set. The
// session does not get the times.
[[nodiscard]] Status measure_task_sizes(const ModelTasks& model, LimitedModel& limited,
                                        const TaskAlone& task, const CompileOptions& compile,
                                        const MeasureSizesOptions& options);

}  // namespace hone
