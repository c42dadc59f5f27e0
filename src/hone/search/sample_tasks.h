// search/sample_tasks.h - measures a sample of the schedules of many tasks on several devices, for
// a data set (docs/user/dataset.md). Round after round every task gets some schedules on every
// device; each is compiled once and timed with every number of threads, a small fixed number of
// times. What is in the store counts, so the same call goes on where an earlier one ended, however
// it ended.
#pragma once

#include <atomic>
#include <functional>

#include "hone/base/clock.h"
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
  std::vector<std::string> models;  // that have it; records name them by turns
  measure::Weights weights = measure::Weights::kWarm;
};

struct SampledDevice {
  const target::Target* target = nullptr;
  std::string key;  // target::device_key
};

struct SampleProgress {
  int64_t records = 0;  // of this call
  int64_t stored = 0;   // schedules that count: these and what was there before, ...
  int64_t wanted = 0;   // ... of so many
  int64_t failed = 0;   // of this call's records, those without a time
  int open = 0;         // tasks x devices x threads that get more
  double elapsed = 0, rate = 0, left = 0;  // seconds; records a second
  std::string task, device;                // of the last batch
  int threads = 0;
};

struct SampleOptions {
  std::vector<SampledDevice> devices;
  std::vector<int> threads = {1};
  const cost::CostModel* model = nullptr;  // ranks a part of the candidates
  std::string version;                     // of compiler and space
  uint64_t seed = 1;
  int schedules = 128;          // of each task, device and number of threads
  int round = 32;               // of them before the next task's turn
  double task_seconds = 20;     // of measuring for each of them, at most
  double tolerance = 1e-4;      // of the largest output; 0: no output is checked
  int64_t own_cache_bytes = 0;  // of a core
  bool count_bounds = false;    // by hardware counters, where the runner has them
  measure::TimingOptions timing = sample_timing();
  measure::Runner* runner = nullptr;
  measure::CoreWatch* cores =
      nullptr;  // turns of several threads wait for these; null: for nothing
  db::TrialStore* store = nullptr;
  Clock* clock = nullptr;                // null: the machine's
  measure::HostMonitor* host = nullptr;  // null: the machine's
  double deadline = 0;                   // on that clock
  const std::atomic<bool>* interrupted = nullptr;
  std::function<void(const SampleProgress&)> on_progress;

  // Of each pass (search/repeated_timing.h): 3 to 5 samples of some 50 us, 30 ms at most.
  [[nodiscard]] static measure::TimingOptions sample_timing();
};

struct SampleResult {
  SampleProgress progress;  // at the end
  bool interrupted = false, complete = false;
  // Where the seconds went.
  double compile_seconds = 0, measure_seconds = 0, prepare_seconds = 0;
};

[[nodiscard]] Result<SampleResult> sample_tasks(std::span<const SampledTask> tasks,
                                                const SampleOptions& options);

}  // namespace hone::search
