// inspect.h - shows a model as the compiler sees it: the graph after its passes, the tasks, the
// memory plan, and the predicted time of each task. Nothing is compiled.
#pragma once

#include "hone/graph/memory_plan.h"
#include "hone/graph/passes/pass.h"
#include "hone/session/compile_options.h"
#include "hone/session/summary.h"

namespace hone {

struct Inspection {
  graph::Graph graph;  // after all passes
  graph::TaskList tasks;
  graph::MemoryPlan plan;
  // One per TaskList::groups, with a stored or predicted schedule.
  std::vector<TaskSummary> summaries;
  int64_t weight_bytes = 0;     // size of the distinct constants before they are packed
  std::set<std::string> files;  // files that the model was read from
};

struct InspectOptions {
  CompileOptions compile;
  graph::OnChange on_change;  // called first for the imported graph, as pass "import"
};

[[nodiscard]] Result<Inspection> inspect(const std::string& model,
                                         const InspectOptions& options = {});

// The number of occurrences of each task of a model, by the task's key. Predictions are made only
// to decide whether two tasks become one.
struct TaskCounts {
  std::string model;  // name of the model
  std::map<uint64_t, int> tasks;
  std::set<std::string> files;  // files that the model was read from
};
[[nodiscard]] Result<TaskCounts> count_tasks(const std::string& model,
                                             const CompileOptions& options = {});

}  // namespace hone
