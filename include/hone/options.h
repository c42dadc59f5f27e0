// options.h - the options of jobs, grouped by what they decide. Every field has a default with
// which most callers leave it alone:
//
//   hone::CompileOptions options;
//   options.model.shapes["input"] = {8, 3, 224, 224};
//   options.target.threads = 4;
//
// A name that does not exist, such as an unknown device, is Code::kInvalid when the job starts.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hone/database.h"
#include "hone/progress.h"
#include "hone/shape_range.h"
#include "hone/tensor.h"

namespace hone {

struct JobHooks;  // for Hone's own tests

// How the ONNX file is read. Most models need none of these.
struct ModelOptions {
  // The shapes of inputs, by name: for those with extents that the model leaves open, and to
  // replace those that it gives, as for another batch size.
  std::map<std::string, Shape> shapes;
  // The shapes of inputs with dimensions that differ from run to run, by name; an input has an
  // entry here or in `shapes`. An entry of one dimension whose name is that of a symbol, which the
  // file or another entry has, gives the range of that symbol.
  std::map<std::string, ShapeRange> ranges;
  // Inputs that become constants of the library, which then has them no more.
  std::map<std::string, Tensor> bind;
  // Inputs whose values are known. Those whose values decide a shape are bound; others stay inputs.
  std::map<std::string, Tensor> available;
  // Follow symbolic links from the model's external data to files outside its folder. Off by
  // default, as a model from elsewhere could make any file part of the library.
  bool linked_data = false;
  // The most turns of a loop whose number of turns is known at run time only, where the model does
  // not bound it. A run that wants more of them fails. What such a loop stacks takes memory for
  // all.
  int64_t max_turns = 10'000;
};

// The machine that the library is to run on, and how.
struct TargetOptions {
  // The machine to compile for: "host", or a name that device_names() lists. Tuning needs a device
  // that is here: "host", its parts, or a GPU of this machine.
  std::string device = "host";
  // The machine that "host" is and that measures: empty: this one; grpc://HOST:PORT, where hone
  // serve runs; or a file about such a machine (docs/user/remote.md).
  std::string machine;
  // The number of threads that the library will run on; 0: all cores of a CPU. It also runs on
  // other numbers, but its schedules are chosen for this one. On a GPU 1 of the host works: 0 or 1.
  int threads = 0;
  // The most seconds that a run on a GPU may take, where open_model() loads a library; 0: any
  // (LoadOptions::time_limit).
  double time_limit = 0;
  // How much results may be rounded. "strict": only as the model's own sums are; "default": also as
  // Winograd's and Strassen's algorithms do; "fast": also weights in bf16, products in tf32 (GPUs).
  std::string accuracy = "default";
  // The limit of bytes that the library needs in its device's memory, with weights (on a GPU also
  // inputs and outputs); 0: none. Slower algorithms keep to it; if none does, that is an error.
  int64_t max_memory = 0;
};

// The file that is written.
struct LibraryOptions {
  // The prefix of its C symbols. Two libraries in one program need different ones.
  std::string prefix = "hone_model";
  bool header = false;  // also write the C header beside it: model.h for model.so
  // Write a static library. This is also done if the name of the output ends in ".a".
  bool static_library = false;
  // Compare the finished library with the model as imported, on random inputs, before it takes its
  // place, and leave out what makes it wrong. By default, tune() always does so, and compile() if
  // that takes less than a tenth of its time.
  std::optional<bool> check;
  // Return only when the library is on the disk. False is faster, for a library that only this
  // process will load.
  bool sync = true;
};

// Measurements of earlier runs: which are used, and where new ones are kept.
struct RecordOptions {
  // The database: a file, or postgres://user@host/name; empty: ~/.local/share/hone/hone.db. tune()
  // creates it; for other jobs, one that is named must exist.
  std::string db;
  bool use_db = true;  // if false, nothing is read from a database or stored in one
  // Whose schedules serve kernels without a record. "pool": those of all models; "one": those of
  // the most promising model; "off": none.
  std::string transfer = "pool";
  // Which tasks' schedules are tried for a kernel without a record: "shapes": those with the most
  // alike shapes; "spearman": those whose extents have the highest rank correlation with its own,
  // 0.6 or more, as in "spearman:tau=0.6,sources=48".
  std::string nearest = "shapes";
  // Names of models whose records are ignored.
  std::vector<std::string> exclude_models;
  bool use_shipped = true;     // use the records that come with Hone; needs use_db
  std::string shipped;         // their folder; empty: the one that was installed with Hone
  bool require_tuned = false;  // for compile(): a kernel without a record of its own is an error
};

// Most callers leave these alone.
struct AdvancedOptions {
  // The cost model that predicts times: "auto", "analytic", or another name or file that
  // docs/user/cost_models.md describes. "auto" is the best one for the device.
  std::string cost = "auto";
  // A second cost model that chooses again among the best few that `cost` predicts, for kernels
  // without a record; empty: none. Its name is followed by options, as in
  // "static.model:candidates=8,weight=0.5": how many are compared, and its share of the decision.
  // It may be too slow for more, as a score of machine code is, which compiles each of them.
  std::string refine;
  uint64_t seed = 1;  // of all random choices; the same seed repeats them
  // Names of passes over the graph that are left out, to find one that is wrong; "run_together"
  // stands for running kernels together.
  std::vector<std::string> skip_passes;
  std::vector<std::string> also_passes;  // names of passes that run only on request
  // Hone's own tests exchange or look at parts of a job by this. If it is not null, it must outlive
  // the job.
  const JobHooks* hooks = nullptr;
};

// How a model is compiled.
struct CompileOptions {
  ModelOptions model;
  TargetOptions target;
  LibraryOptions library;
  RecordOptions records;
  AdvancedOptions advanced;
  // If it becomes true, for example by a signal's handler, the job ends early with
  // Code::kCancelled, and nothing is written. It may be null.
  const std::atomic<bool>* interrupted = nullptr;
};

// These are the values that SearchOptions::mode sets.
inline constexpr int kEfficientStep = 64;       // schedules of a step (Fasor, section 6.2)
inline constexpr int kQualityPatience = 128;    // measurements of a kernel: two such steps
inline constexpr double kQualityBudget = 3600;  // seconds that the command line gives it

// How long and by which means a search looks for faster schedules.
struct SearchOptions {
  // When a search ends. "": when the budget is spent or nothing can be gained. "efficient": before
  // it begins, as nothing is measured. Each kernel without a record gets the best predicted of
  // kEfficientStep schedules that one step of the strategy proposes, or what compile() takes if
  // none seems faster; budget_seconds is not used. "quality": also when it has converged. A kernel
  // has once kQualityPatience measurements of it in a row brought less than 1 %.
  std::string mode;
  // The time that tune() may take, from its start until the library is on the disk.
  double budget_seconds = 60;
  // The seconds of the budget that are spent already when tune() is called.
  double spent_seconds = 0;
  int max_trials = 0;  // limit of the number of measurements; 0: none
  // The search strategy: a name, then ":" and its options, as in "beam:width=16".
  // docs/user/tuning.md describes them.
  std::string strategy = "mixed";
  // The file of what the strategy has learned in earlier runs. It is read if it exists, and written
  // after the search. If it is empty, there is no file. It is an error for a strategy that learns
  // nothing.
  std::string policy_state;
  // The cost model that guides the search; empty: the one of AdvancedOptions::cost. That one
  // decides the rest: which kernels the model is divided into, and which schedule of each is tried
  // first.
  std::string guide;
  // How a neural cost model that guides the search learns while it runs: "none", "head", "full",
  // "momentum" or "scratch", as docs/user/cost_models.md says.
  std::string adapt = "none";
  // The file of a score of machine code (hone train --cost static). A candidate that it predicts to
  // take more than `factor` times as long as the best that was measured is compiled, but not
  // measured, except for the best of each batch, `share` of it, as in
  // "static.model:factor=2,share=0.25". If it is empty, all are measured.
  std::string filter;
  int batch = 8;  // number of candidates that are measured at a time
  // Compile candidates while others are measured. By default, this is done if the threads leave a
  // core for it.
  std::optional<bool> overlap;
};

// How a model is tuned.
struct TuneOptions {
  CompileOptions compile;
  SearchOptions search;
  // If it becomes true, the search ends early, and the library is written with the best schedules
  // so far. It may be null. CompileOptions::interrupted, in contrast, ends the job without a
  // library.
  const std::atomic<bool>* interrupted = nullptr;
  // Called by the thread that called tune(), a few times a second. It should return at once.
  std::function<void(const TuneProgress&)> on_progress;
  // Called by that thread, too, for each measurement, before the call of on_progress that counts
  // it. It should return at once.
  std::function<void(const TrialInfo&)> on_trial;
  bool programs = false;  // also make TuneSummary::programs
};

}  // namespace hone
