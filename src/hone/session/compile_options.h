// compile_options.h - the options by which a model is compiled.
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

// A shared library that is complete, but not yet at its final path. For a static library, it is a
// shared library of the same kernels and weights.
struct FinishedLibrary {
  std::string file;
  double assembly_seconds = 0;  // seconds for compiling its kernels and packing its weights
};

struct CompileOptions {
  // The shapes of inputs, for those with unknown extents or to replace those in the model.
  std::map<std::string, Shape> shapes;
  std::map<std::string, Tensor> bind;  // inputs that become constants of the library
  // Inputs whose values are known. They are bound, too, if a value decides a shape.
  std::map<std::string, Tensor> available;
  bool linked_data = false;     // as in graph::ImportOptions
  std::string device = "host";  // a name that machine::Machine::find knows
  // The machine that "host" stands for and that measures. If it is null, it is the one that this
  // process runs on.
  const machine::Machine* machine = nullptr;
  std::string db;      // as for db::open_store; if it is empty, the default path
  bool use_db = true;  // if false, nothing is read from a database or stored in one
  // The source of schedules for tasks without a record, which are those of other tasks. "pool":
  // tasks of all models; "one": tasks of the most promising model (search::rank_sources); "off":
  // none.
  std::string transfer = "pool";
  // Names of models. Records of their tasks are ignored.
  std::vector<std::string> exclude_models;
  bool use_shipped = true;     // use the records that come with Hone; needs use_db
  std::string shipped;         // their folder; if it is empty, beside the program or as installed
  bool require_tuned = false;  // for compile(): a task without a record of its own is an error
  // The name of the cost model: "auto" is cost::default_model; others are those of make_cost_model
  // (session/cost_models.h).
  std::string cost = "auto";
  std::string accuracy = "default";   // as for trial::parse_accuracy
  std::string prefix = "hone_model";  // prefix of the artifact's C symbols
  // Names of passes over the graph that are left out, to find a wrong one.
  std::vector<std::string> skip_passes;
  std::vector<std::string> also_passes;  // names of passes that run only on request
  int threads = 0;  // number of threads that the library will run on; 0: all cores of the device
  // The limit of bytes that the library needs when it runs, including its weights; 0: none. If the
  // packed weights of an algorithm are too large for it, another algorithm is used.
  int64_t max_memory = 0;
  uint64_t seed = 1;
  bool header = false;  // write the C header beside the library (model.h for model.so)
  // Write a static library. One is also written if the name of the output ends in ".a".
  bool static_library = false;
  // Compare the finished library with the model as imported before it is put at its path
  // (commands/check/checked_writer.h). By default, tune() always does so, and compile() if that
  // takes less than a tenth of its time.
  std::optional<bool> check;
  // Called with the library before it is put at its path. An error prevents that.
  std::function<Status(const FinishedLibrary&)> inspect;
  // Called after each pass over the graph that ran. It may change the graph, for tests.
  std::function<void(const std::string& pass, graph::Graph&)> after_pass;
  // Return only when the library is on the disk. False is for a library that only this job runs.
  bool sync = true;
  // For compile(): set by Ctrl-C. It then ends early with Code::kCancelled and writes nothing.
  const std::atomic<bool>* interrupted = nullptr;
};

// Returns the machine that the options name.
[[nodiscard]] const machine::Machine& machine_of(const CompileOptions& options);
// Returns an error if the device, the accuracy or the transfer is none that exists. The name of the
// cost model is not checked.
[[nodiscard]] Status check_options(const CompileOptions& options);

}  // namespace hone
