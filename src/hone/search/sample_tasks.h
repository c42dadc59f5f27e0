// search/sample_tasks.h - measures a sample of the schedules of many tasks on several devices, for
// a data set (docs/user/dataset.md). Round after round every task gets some schedules on every
// device; each is compiled once and timed with every number of threads, a small fixed number of
// times. What is in the store counts, so the same call goes on where an earlier one ended, however
// it ended.
#pragma once

#include <atomic>
#include <functional>

#include "hone/base/clock.h"
#include "hone/dataset.h"
#include "hone/db/trial_store.h"
#include "hone/measure/core_state.h"
#include "hone/measure/runner.h"
#include "hone/search/candidate.h"
#include "hone/search/searcher.h"

namespace hone::search {

struct SampledTask {
  const compute::Dag* dag = nullptr;
  uint64_t key = 0;
  std::string name;                 // for people
  std::vector<std::string> models;  // networks that have the task; records name them in turns
  measure::Weights weights = measure::Weights::kWarm;
};

struct SampledDevice {
  const target::Target* target = nullptr;
  std::string key;  // target::device_key
};

struct SampleOptions {
  std::vector<SampledDevice> devices;
  std::vector<int> threads = {1};
  const cost::CostModel* model = nullptr;  // ranks a part of the candidates
  std::string version;                     // version of compiler and space
  uint64_t seed = 1;
  int schedules = 128;          // schedules for each task, device and number of threads
  int round = 32;               // schedules of a task before the next task's turn
  double task_seconds = 20;     // most seconds of measuring for each of them
  double tolerance = 1e-4;      // relative to the largest output; 0: no output is checked
  int64_t own_cache_bytes = 0;  // size of a core's own caches
  bool count_bounds = false;    // counts hardware events, where the runner can
  measure::TimingOptions timing = sample_timing();
  measure::Runner* runner = nullptr;
  measure::CoreWatch* cores =
      nullptr;  // turns of several threads wait for these; null: they do not wait
  db::TrialStore* store = nullptr;
  Clock* clock = nullptr;                // null: the machine's
  measure::HostMonitor* host = nullptr;  // null: the machine's
  double deadline = 0;                   // time on that clock
  const std::atomic<bool>* interrupted = nullptr;
  std::function<void(const DatasetProgress&)> on_progress;

  // Returns the options of each pass (search/repeated_timing.h): 3 to 5 samples of some 50 us, 30
  // ms at most.
  [[nodiscard]] static measure::TimingOptions sample_timing();
};

[[nodiscard]] Result<DatasetSummary> sample_tasks(std::span<const SampledTask> tasks,
                                                  const SampleOptions& options);

}  // namespace hone::search
