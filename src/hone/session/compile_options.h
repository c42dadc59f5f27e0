// compile_options.h - how a model is compiled.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hone/base/status.h"
#include "hone/tensor/tensor.h"

namespace hone {

namespace graph {
struct Graph;
}
namespace machine {
class Machine;
}

// A shared library that is about to take its place; of a static one, a shared one of the same
// kernels.
struct FinishedLibrary {
  std::string file;
  double assembly_seconds = 0;  // that its kernels and weights took
};

struct CompileOptions {
  std::map<std::string, Shape> shapes;  // of inputs: open extents, or others than the model's
  std::map<std::string, Tensor> bind;   // inputs that become constants of the library
  // Inputs whose values are known: bound, too, where a value decides a shape.
  std::map<std::string, Tensor> available;
  bool linked_data = false;     // graph::ImportOptions
  std::string device = "host";  // a name that machine::Machine::find knows
  // The machine that "host" is and that measures; null: the one that this process runs on.
  const machine::Machine* machine = nullptr;
  std::string db;      // db::open_store; empty: the default path
  bool use_db = true;  // false: nothing is looked up or kept
  // Schedules of other tasks for those without a record: "pool": of all models; "one": of the model
  // that promises most (search::rank_sources); "off": none.
  std::string transfer = "pool";
  std::vector<std::string>
      exclude_models;          // what was learned from models of these names is unknown
  bool use_shipped = true;     // the records that come with Hone, if use_db
  std::string shipped;         // their folder; empty: beside the program or as installed
  bool require_tuned = false;  // compile(): a task without a record of its own is an error
  // cost::default_model, or what make_cost_model takes (neural/neural_model.h).
  std::string cost = "auto";
  std::string accuracy = "default";      // trial::parse_accuracy
  std::string prefix = "hone_model";     // of the artifact's C symbols
  std::vector<std::string> skip_passes;  // over the graph: left out, to find the one that is wrong
  std::vector<std::string> also_passes;  // those that run only where they are asked for
  int threads = 0;  // that the library will run on; 0 = all cores of the device
  // Bytes that the library takes when it runs, its weights included; 0: any number. Where an
  // algorithm needs larger weights than fit, another one takes its place.
  int64_t max_memory = 0;
  uint64_t seed = 1;
  bool header = false;          // write the C header beside the library (model.h for model.so)
  bool static_library = false;  // write a static one; also if the output's name ends in .a
  // Whether the finished library is compared with the model as imported before it takes its place
  // (checked_writer.h). Default: tune() always, compile() where that takes less than a tenth of
  // its time.
  std::optional<bool> check;
  // Called with the library before it takes its place; an error keeps it from doing so.
  std::function<Status(const FinishedLibrary&)> inspect;
  // Called after each pass over the graph that ran. It may change the graph: for tests.
  std::function<void(const std::string& pass, graph::Graph&)> after_pass;
  bool sync = true;  // return when the library is on the disk; false: for one that is only run
  // compile(): set by Ctrl-C: ends early with Code::kCancelled and writes nothing.
  const std::atomic<bool>* interrupted = nullptr;
};

// The machine that the options name.
[[nodiscard]] const machine::Machine& machine_of(const CompileOptions& options);
// An error if a name among them stands for nothing, but for the cost model's.
[[nodiscard]] Status check_options(const CompileOptions& options);

}  // namespace hone
