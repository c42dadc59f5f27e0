// inspect.h - shows a model as the compiler sees it: the graph after its passes, the tasks, the
// memory, and the predicted time of each task. Nothing is compiled.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "hone/export.h"
#include "hone/options.h"
#include "hone/status.h"
#include "hone/summary.h"
#include "hone/tensor.h"

namespace hone {

// The graph after a pass that changed it.
struct PassChange {
  std::string pass;                  // "import" for the graph as imported
  std::string graph;                 // its text, one node a line
  std::map<std::string, int> rules;  // how often each rule of the pass changed it
};

struct InspectOptions {
  CompileOptions compile;
  bool dot = false;                                  // also make Inspection::dot
  std::function<void(const PassChange&)> on_change;  // called in the order of the passes
};

// A distinct task, with a stored or predicted schedule.
struct InspectedTask {
  TaskSummary summary;
  Shape result;  // of its first occurrence
};

struct Inspection {
  std::string graph;         // its text after all passes
  std::string dot;           // a drawing of the tasks in Graphviz's language
  int nodes = 0;             // number of nodes after all passes
  int tasks = 0;             // number of tasks in the model; `distinct` has each distinct one once
  double flops = 0;          // of one run of the model
  int64_t weight_bytes = 0;  // size of the distinct constants before they are packed
  int64_t arena_bytes = 0;   // largest size of the intermediate tensors
  // Their numbers, from 1, and their keys are what ExplainOptions::task takes.
  std::vector<InspectedTask> distinct;
  std::set<std::string> files;  // files that the model was read from
};

[[nodiscard]] HONE_API Result<Inspection> inspect(const std::string& model,
                                                  const InspectOptions& options = {});
// Returns the names of all passes over the graph, in their order.
[[nodiscard]] HONE_API std::vector<std::string> pass_names();

}  // namespace hone
