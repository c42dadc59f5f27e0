// tune_options.h - the options of tune(), and the summary of its work.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "hone/measure/worker_process.h"
#include "hone/search/tune_tasks.h"
#include "hone/session/compile_options.h"
#include "hone/session/summary.h"

namespace hone {

struct TuneOptions {
  CompileOptions compile;
  double budget_seconds = 60;    // from `start_seconds` until the library is on the disk
  double start_seconds = -1;     // on real_clock(); negative: now
  std::string search = "mixed";  // as for search::make_policy: a strategy, then ":" and its options
  // The file of what the strategy has learned in earlier runs. It is read if it exists, and written
  // after the search. If it is empty, there is no file. It is an error for a strategy that learns
  // nothing.
  std::string policy_state;
  // The cost model that guides the search; if it is empty, it is `compile.cost`. The latter decides
  // the rest: which kernels the model is divided into, and which schedule of each is tried first.
  std::string guide;
  std::string adapt = "none";  // how a net that guides the search learns (neural/net_adaptation.h)
  int batch = 8;               // number of candidates that are measured at a time
  int max_trials = 0;          // limit of the number of trials; 0: none
  // Compile candidates while others are measured. By default, this is done if the threads leave a
  // core for it.
  std::optional<bool> overlap;
  measure::WorkerOptions worker;
  // Set by Ctrl-C. The search then ends early, and the library is written.
  const std::atomic<bool>* interrupted = nullptr;
  std::function<void(const search::TuneProgress&)> on_progress;
};

// The comparison of the best few schedules of kernels inside the whole model.
struct InModelSummary {
  int compared = 0, changed = 0;  // number of kernels
  double saved_seconds = 0;       // seconds that the changed kernels save in a run of the model
  double model_seconds = 0;       // seconds of a run before the change
  double seconds = 0;             // seconds that the comparison took
  std::string skipped;            // why there was no comparison; empty if there was one
};

struct TuneSummary {
  CompileSummary compile;
  int trials = 0;
  double search_seconds = 0;  // seconds of the tuning loop
  // The seconds for which the search, and the comparisons after it, waited until each thread had a
  // core of its own (measure/core_state.h).
  double waited_seconds = 0;
  std::map<trial::Outcome, search::Failures> failures;  // schedules that could not be measured
  bool interrupted = false;
  // The seconds of a run of the whole model: tuned, and as compile() would have made it before.
  // They are measured alternately, and 0 if they were not. If `kept_untuned`, they are exchanged:
  // the first is always that of the library.
  double model_seconds = 0, untuned_model_seconds = 0;
  std::string not_compared;  // why they were not measured; empty if they were
  // The library is the untuned model, as the tuned one is slower with 95 % confidence.
  bool kept_untuned = false;
  InModelSummary in_model;
  // The first failure of the database. It ended the search. Measurements after it are not stored,
  // but the library uses all of them.
  Status store_status;
  Status policy_status;  // why TuneOptions::policy_state was not written, or ok
};

}  // namespace hone
