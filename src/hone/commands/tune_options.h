// tune_options.h - what tune() is asked for, and what it says of its work.
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
  double budget_seconds = 60;    // from `start_seconds` to the library on disk
  double start_seconds = -1;     // on real_clock(); < 0: now
  std::string search = "mixed";  // search::make_policy: a strategy, with options after ":"
  // What the strategy learned in earlier runs: read if the file is there, and written after the
  // search. Empty: no file. A strategy that learns nothing is an error.
  std::string policy_state;
  // The cost model that guides the search; `compile.cost`, which it is if empty, decides the rest:
  // which kernels there are and what is tried of each first.
  std::string guide;
  std::string adapt = "none";  // how a net that guides learns (neural/net_adaptation.h)
  int batch = 8;               // candidates measured at a time
  int max_trials = 0;          // 0: no limit
  // Compile candidates while others are measured. Default: if the threads leave a core for it.
  std::optional<bool> overlap;
  measure::WorkerOptions worker;
  const std::atomic<bool>* interrupted = nullptr;  // set by Ctrl-C: ends early, writes the library
  std::function<void(const search::TuneProgress&)> on_progress;
};

// Kernels whose best few schedules were compared inside the whole model.
struct InModelSummary {
  int compared = 0, changed = 0;
  double saved_seconds = 0;  // of a run, by those changed
  double model_seconds = 0;  // of a run before
  double seconds = 0;        // that the comparison took
  std::string skipped;       // why there was none; empty: there was
};

struct TuneSummary {
  CompileSummary compile;
  int trials = 0;
  double search_seconds = 0;  // of the tuning loop
  double waited_seconds =
      0;  // of it and after it, until each thread had a core (measure/core_state.h)
  std::map<trial::Outcome, search::Failures> failures;  // schedules that could not be measured
  bool interrupted = false;
  // The whole model, tuned and as compile() would have made it before, measured in turns; 0 if it
  // was not.
  double model_seconds = 0, untuned_model_seconds = 0;
  std::string not_compared;   // why it was not; empty: it was
  bool kept_untuned = false;  // the tuned one was slower, with 95 % confidence
  InModelSummary in_model;
  // The first failure of the database. It ended the search, and what was measured after it is not
  // kept; the library is of all that was measured.
  Status store_status;
  Status policy_status;  // Why TuneOptions::policy_state was not written, or ok.
};

}  // namespace hone
