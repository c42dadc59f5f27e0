// search/task_context.h - a task to tune, and what all tasks of a run have in common.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "hone/base/phase_clock.h"
#include "hone/measure/job.h"
#include "hone/schedule/step.h"
#include "hone/search/code_filter.h"
#include "hone/search/lower_schedule.h"
#include "hone/search/nearest.h"
#include "hone/search/policy.h"
#include "hone/space/space.h"
#include "hone/trial/record.h"

namespace hone::search {

struct TuneTask {
  const compute::Dag* dag = nullptr;
  uint64_t key = 0;
  double multiplicity = 1;
  std::string name;  // for people
  // The schedule to be beaten, at which the search begins; none: the space's default point.
  std::optional<schedule::Steps> start = {};
  // The task's space for the accuracy of the context; none: the tuner makes it.
  std::optional<space::Space> space = {};
  // Returns the program of a schedule that was lowered before, or null; may be missing.
  std::function<ProgramPtr(const schedule::Steps&)> lowered = {};
};

// Everything pointed to outlives the run.
struct TaskContext {
  const target::Target* target = nullptr;
  cost::CostModel* model = nullptr;  // learns from what is measured
  Policy* policy = nullptr;          // makes the searchers; null: kDefaultStrategy
  std::string device;                // target::device_key
  std::string version;               // version of compiler and space
  std::string source;                // Record::model
  int threads = 1;                   // threads that the kernels run on
  uint64_t seed = 1;
  const std::set<uint64_t>* excluded = nullptr;  // tasks whose stored records do not count
  trial::Accuracy accuracy = trial::Accuracy::kDefault;
  double tolerance = 1e-4;  // relative to the largest output
  measure::Weights weights = measure::Weights::kWarm;
  int64_t own_cache_bytes = 0;  // size of a core's own caches
  measure::TimingOptions timing;
  Nearest nearest;               // chooses the tasks whose schedules a task starts from
  CodeFilter* filter = nullptr;  // says what is compiled, but not measured; null: nothing
  PhaseClock* phases = nullptr;  // is told what the thread that tunes does; may be null
  // The number of a task's newest records that are read; their points are not tried again.
  int64_t most_known = 20000;
};

}  // namespace hone::search
