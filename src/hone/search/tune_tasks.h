// search/tune_tasks.h - the tuning loop: the scheduler picks a task, its searcher proposes,
// candidates are compiled, measured, verified and stored, until the time is up, the user
// interrupts, the store fails, or nothing is left to try. Whatever was measured is in the store
// when it returns, but for what came after a failure of the store.
#pragma once

#include <atomic>
#include <functional>
#include <map>

#include "hone/base/clock.h"
#include "hone/measure/core_state.h"
#include "hone/measure/runner.h"
#include "hone/search/task_tuner.h"

namespace hone::search {

struct TaskProgress {
  std::string name;
  double multiplicity = 1;
  double untuned_seconds = 0;  // 0: not measured yet
  double best_seconds = 0;
  int trials = 0;
  double bound_seconds = 0;  // what no schedule is expected to beat
  double share = 0;          // of the model's time
  double expected_gain = 0;  // share of the model's time that kGainSeconds more on it may save
  bool at_limit = false;     // it gets no more time
};
inline constexpr double kGainSeconds = 10;

struct TuneProgress {
  double elapsed = 0, budget = 0;  // seconds
  double left = 0;  // seconds until the time or the trials are spent, as it looks now
  int trials = 0;
  double trials_per_second = 0;
  int task = -1;                // that the last batch was of
  std::string_view stage = {};  // what is done after the search, in words; empty: it goes on
  std::vector<TaskProgress> tasks;
};

struct TuneLoopOptions {
  TaskContext context;
  measure::Runner* runner = nullptr;
  measure::CoreWatch* cores = nullptr;      // batches wait for these; null: for nothing
  db::TrialStore* store = nullptr;          // null: nothing is kept or known
  const TransferPool* pool = nullptr;       // schedules of other tasks to start from; null: none
  Clock* clock = nullptr;                   // null: the machine's
  measure::HostMonitor* host = nullptr;     // null: the machine's
  std::optional<trial::Roofline> roofline;  // the machine's limits; none: its description's
  double start = 0;                         // on that clock: when the budget began to run
  double deadline = 0;                      // on that clock
  double end = 0;                           // of all that is told of; 0: the deadline
  int batch = 8;
  int max_trials = 0;           // 0: no limit
  int max_task_trials = 0;      // of each task; 0: no limit
  int compile_threads = 0;      // 0: the cores that measuring leaves, or all between batches
  std::optional<bool> overlap;  // compile while measuring; default: if a core is left for it
  double final_share = 0.06;    // of the time, at most, to measure the best few of each task again
  const std::atomic<bool>* interrupted = nullptr;
  std::function<void(const TuneProgress&)> on_progress;
};

struct MeasuredSchedule {
  schedule::Steps steps;
  double seconds = 0;
  bool other_split = false;  // over the threads than the fastest one's: other parts, of other data
  bool fewer_weights = false;  // than the fastest one, which may find less of them in the caches
};

struct TunedTask {
  schedule::Steps steps;  // the best verified of this run, else the stored, else the default
  schedule::Steps untuned_steps;
  double seconds = 0;  // of the best; 0 if nothing was measured
  double untuned_seconds = 0;
  int trials = 0;
  std::vector<MeasuredSchedule> runners_up = {};  // next best, verified in this run; fastest first
  bool untuned_is_wrong = false;                  // that schedule fails here: it must not be used
  Offered offered = {};                           // by TuneLoopOptions::pool
};

// Schedules that could not be measured, of one outcome.
struct Failures {
  int count = 0;
  std::string first;  // why the first one failed
};

struct TuneResult {
  std::vector<TunedTask> tasks;  // in the order given
  int trials = 0;
  std::map<trial::Outcome, Failures> failures;
  double seconds = 0;  // spent in the loop
  bool interrupted = false;
  Status store_status = ok_status();  // its first failure, which ended the search
};

[[nodiscard]] Result<TuneResult> tune_tasks(std::span<const TuneTask> tasks,
                                            const TuneLoopOptions& options);

}  // namespace hone::search
