// tune.h - makes a native library of an ONNX model that is tuned by measuring candidates on this
// machine, in worker processes, until a budget of time is spent.
//
//   hone::tune("resnet18.onnx", "resnet18.so", {.search = {.budget_seconds = 60}});
#pragma once

#include <string>
#include <vector>

#include "hone/export.h"
#include "hone/options.h"
#include "hone/status.h"
#include "hone/summary.h"

namespace hone {

// The comparison of the best few schedules of kernels inside the whole model.
struct InModelSummary {
  int compared = 0, changed = 0;  // number of kernels
  double saved_seconds = 0;       // seconds that the changed kernels save in a run of the model
  double model_seconds = 0;       // seconds of a run before the change
  double seconds = 0;             // seconds that the comparison took
  std::string skipped;            // why there was no comparison; empty if there was one
};

// What was measured of kernels in runs of smaller sizes than the largest, if shapes vary.
struct SizesSummary {
  int kernels = 0;      // number of kernels of which schedules were measured
  int trials = 0;       // number of measurements: schedules times sizes
  int left_out = 0;     // number of kernels for which there was no time
  double seconds = 0;   // seconds that this took
  std::string skipped;  // why not all was measured that was to be; empty if it was
};

// The schedules that could not be measured for one kind of reason.
struct FailureSummary {
  std::string outcome;  // "compile", "load", "crash", "timeout" or "wrong answer"
  int count = 0;
  std::string first;  // why the first one failed
};

// The seconds that the thread of a tune spent on each kind of work. It does one at a time, so all
// but `overlapped` add up to CompileSummary::seconds.
struct TuneSeconds {
  double measuring = 0;  // running candidates and models, or waiting until they have run
  double compiling = 0;  // making machine code of candidates and of the library, or waiting for it
  double choosing = 0;   // predicting, proposing and lowering schedules; teaching cost models
  double packing = 0;    // packing weights, linking and writing libraries
  double checking = 0;   // comparing the library with the model as imported
  double waiting = 0;    // waiting until each thread had a core of its own
  double other = 0;      // all else: import, passes over the graph, the database
  // The part of choosing and compiling during which candidates were being measured as well.
  double overlapped = 0;
};

struct TuneSummary {
  CompileSummary compile;
  int trials = 0;
  double search_seconds = 0;  // seconds of the tuning loop
  int compiled = 0;           // candidates that were compiled, with those that cannot be
  // The seconds of the tuning loop in which at least one candidate was being compiled.
  double compile_seconds = 0;
  TuneSeconds spent;
  // The seconds for which the search, and the comparisons after it, waited until each thread had a
  // core of its own.
  double waited_seconds = 0;
  // Candidates that the device cannot run, as a block of threads needs more than it has, and those
  // that were not measured as too many registers of a thread ran out. Both are failures of
  // "compile".
  int cannot_run = 0, spilling = 0;
  // Candidates whose machine code SearchOptions::filter predicted, those of them that it kept from
  // being measured, and the seconds of all threads for these predictions.
  int scored = 0, filtered = 0;
  double score_seconds = 0;
  std::vector<FailureSummary> failures;
  bool interrupted = false;
  // The seconds of a run of the whole model: tuned, and as compile() would have made it before.
  // They are measured alternately, and 0 if they were not. If `kept_untuned`, they are exchanged:
  // the first is always that of the library.
  double model_seconds = 0, untuned_model_seconds = 0;
  std::string not_compared;  // why they were not measured; empty if they were
  // The library is the untuned model, as the tuned one is slower with 95 % confidence.
  bool kept_untuned = false;
  InModelSummary in_model;
  SizesSummary sizes;  // all zero if no shape varies
  // The first failure of the database. It ended the search. Measurements after it are not stored,
  // but the library uses all of them.
  Status store_status;
  // The programs of the tasks of `compile`, in their order, if TuneOptions::programs asks for them.
  std::vector<TaskPrograms> programs;
  Status policy_status;  // why SearchOptions::policy_state was not written, or ok
};

// Tunes the model at the path `model` and writes its library to the path `output`. It takes the
// budget, less if nothing is left to try. What it measures is kept in the database, so a second run
// continues where the first one ended. It never writes a library that is slower than that of
// compile(), as far as measuring can tell. Errors are those of compile(), and a device that this
// machine is not is Code::kUnsupported or kInvalid.
[[nodiscard]] HONE_API Result<TuneSummary> tune(const std::string& model, const std::string& output,
                                                const TuneOptions& options = {});

// Returns an error if a strategy, as in SearchOptions::strategy, does not exist or does not take
// these options.
[[nodiscard]] HONE_API Status check_strategy(const std::string& strategy);
// Returns the names of all strategies.
[[nodiscard]] HONE_API std::vector<std::string> strategy_names();

}  // namespace hone
