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
#include "hone/search/trial_keeper.h"
#include "hone/search/tune_progress.h"

namespace hone::search {

struct TuneLoopOptions {
  TaskContext context;
  measure::Runner* runner = nullptr;
  measure::CoreWatch* cores = nullptr;      // batches wait for these; null: they do not wait
  db::TrialStore* store = nullptr;          // null: nothing is kept or known
  const TransferPool* pool = nullptr;       // schedules of other tasks to start from; null: none
  Clock* clock = nullptr;                   // null: the machine's
  measure::HostMonitor* host = nullptr;     // null: the machine's
  std::optional<trial::Roofline> roofline;  // the machine's limits; none: its description's
  double start = 0;                         // on that clock: when the budget began to run
  double deadline = 0;                      // time on that clock
  double end = 0;                           // end of all work that progress covers; 0: the deadline
  int batch = 8;
  int max_trials = 0;           // 0: no limit
  int max_task_trials = 0;      // limit per task; 0: no limit
  int patience = 0;             // measurements without a gain that end a task; 0: no limit
  int compile_threads = 0;      // 0: the cores that measuring leaves, or all between batches
  std::optional<bool> overlap;  // compile while measuring; default: if a core is left for it
  // Largest share of the time for measuring the best few of each task again.
  double final_share = 0.06;
  const std::atomic<bool>* interrupted = nullptr;
  std::function<void(const TuneProgress&)> on_progress;
  // Called with what each batch adds to the store, or would add if there were one.
  std::function<void(std::span<const trial::Record>)> on_records;
};

// The candidates whose code was not measured, by reason.
struct DroppedCandidates {
  int cannot_run = 0, spilling = 0;
};

struct TuneResult {
  std::vector<TunedTask> tasks;  // in the order given
  int trials = 0;
  int compiled = 0;            // candidates of which machine code was made, or could not be made
  double compile_seconds = 0;  // seconds in which at least one was being compiled
  // Seconds in which candidates were chosen or compiled by the thread of the loop while others were
  // being measured.
  double overlapped_seconds = 0;
  DroppedCandidates dropped;
  CodeFilter::Counts filtered;  // what TaskContext::filter did
  std::map<trial::Outcome, Failures> failures;
  double seconds = 0;  // spent in the loop
  bool interrupted = false;
  bool nothing_left = false;  // it ended because no task has anything left to gain or to try
  Status store_status = ok_status();  // its first failure, which ended the search
};

[[nodiscard]] Result<TuneResult> tune_tasks(std::span<const TuneTask> tasks,
                                            const TuneLoopOptions& options);

}  // namespace hone::search
