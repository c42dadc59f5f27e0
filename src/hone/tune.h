// tune.h - the public facade: an ONNX model becomes a native library, tuned by measuring or
// compiled with the best schedules that are known or predicted.
//
//   hone::tune("resnet18.onnx", "resnet18.so", {.budget_seconds = 60});
//   auto model = hone::load("resnet18.so");
//   auto outputs = model->run(inputs);
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hone/codegen/loaded_model.h"
#include "hone/measure/worker_process.h"
#include "hone/search/tune_tasks.h"

namespace hone {

namespace graph {
struct Graph;
}

struct CompileOptions {
  std::map<std::string, Shape> shapes;  // of inputs: open extents, or others than the model's
  std::map<std::string, Tensor> bind;   // inputs that become constants of the library
  // Inputs whose values are known: bound, too, where a value decides a shape.
  std::map<std::string, Tensor> available;
  std::string device = "host";  // a name that target::find knows
  std::string db;               // db::open_store; empty: the default path
  bool use_db = true;           // false: nothing is looked up or kept
  // Schedules of other tasks for those without a record: "pool": of all models; "one": of the model
  // that promises most (search::rank_sources); "off": none.
  std::string transfer = "pool";
  std::vector<std::string>
      exclude_models;          // what was learned from models of these names is unknown
  bool use_shipped = true;     // the records that come with Hone, if use_db
  std::string shipped;         // their folder; empty: beside the program or as installed
  bool require_tuned = false;  // compile(): a task without a record of its own is an error
  std::string cost = "auto";  // cost::default_model, or what make_cost_model takes (neural_model.h)
  std::string adapt = "none";            // tune(): how a net among them learns (net_adaptation.h)
  std::string accuracy = "default";      // space::parse_accuracy
  std::string prefix = "hone_model";     // of the artifact's C symbols
  std::vector<std::string> skip_passes;  // over the graph: left out, to find the one that is wrong
  int threads = 0;  // that the library will run on; 0 = all cores of the device
  // Bytes that the library takes when it runs, its weights included; 0: any number. Where an
  // algorithm needs larger weights than fit, another one takes its place.
  int64_t max_memory = 0;
  uint64_t seed = 1;
  bool header = false;          // write the C header beside the library (model.h for model.so)
  bool static_library = false;  // write a static one; also if the output's name ends in .a
  // compile(): set by Ctrl-C: ends early with Code::kCancelled and writes nothing.
  const std::atomic<bool>* interrupted = nullptr;
};

struct TuneOptions {
  CompileOptions compile;
  double budget_seconds = 60;    // from `start_seconds` to the library on disk
  double start_seconds = -1;     // on real_clock(); < 0: now
  std::string search = "mixed";  // search::make_searcher
  int batch = 8;                 // candidates measured at a time
  int max_trials = 0;            // 0: no limit
  // Compile candidates while others are measured. Default: if the threads leave a core for it.
  std::optional<bool> overlap;
  measure::WorkerOptions worker;
  const std::atomic<bool>* interrupted = nullptr;  // set by Ctrl-C: ends early, writes the library
  std::function<void(const search::TuneProgress&)> on_progress;
};

// One distinct task of the model.
struct TaskSummary {
  std::string name;          // of the first node
  std::string kernel_class;  // "conv2d+bias+relu"
  int multiplicity = 1;
  double flops = 0;        // of one occurrence, as its operators are written
  double least_flops = 0;  // of the algorithm that needs the least (Space::least_flops)
  double bytes = 0;        // read and written by it, each once (compute::bytes_moved)
  // Of its schedule: "default", "predicted", "transferred", "stored" or "tuned".
  std::string source;
  std::string from;            // the model, or the task of another shape, that was measured
  double seconds = 0;          // measured or stored; 0 if unknown
  double untuned_seconds = 0;  // measured, of the schedule before tuning; 0 if unknown
  double predicted_seconds = 0;
  int trials = 0;
  // Records of its own that do not apply any more: another version's.
  int stale = 0;
  std::string steps;  // the schedule's text

  // Measured, stored or predicted.
  [[nodiscard]] double known_seconds() const { return seconds > 0 ? seconds : predicted_seconds; }
};

struct CompileSummary {
  std::vector<TaskSummary> tasks;
  double seconds = 0;  // from start to the library on disk
  int64_t bytes = 0;   // of the library
  // Of intermediate tensors while it runs; each thread's scratch memory comes on top.
  int64_t arena_bytes = 0;
  int64_t memory_bytes = 0;  // these, weights, code and scratch memory
  // Kernels that a run starts, and how often: what needs nothing of each other may run together.
  int calls = 0, turns = 0;
  int small = 0;  // of them: too short to gain from threads, so they wake none
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
  std::map<measure::Outcome, search::Failures> failures;  // schedules that could not be measured
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
};

// Bad input is Code::kInvalid, kNotFound or kUnsupported; nothing is written then.
[[nodiscard]] Result<CompileSummary> compile(const std::string& model, const std::string& output,
                                             const CompileOptions& options = {});
[[nodiscard]] Result<CompileSummary> compile(graph::Graph graph, const std::string& output,
                                             const CompileOptions& options = {});
[[nodiscard]] Result<TuneSummary> tune(const std::string& model, const std::string& output,
                                       const TuneOptions& options = {});
[[nodiscard]] Result<TuneSummary> tune(graph::Graph graph, const std::string& output,
                                       const TuneOptions& options = {});
// num_threads: 0 = all cores that this process may use.
[[nodiscard]] Result<codegen::LoadedModel> load(const std::string& library, int num_threads = 0);

}  // namespace hone
