// inspect.h - a model as the compiler sees it: the graph after its passes, the tasks, how memory is
// planned and how long each task is predicted to take. Nothing is compiled.
#pragma once

#include "hone/graph/memory_plan.h"
#include "hone/graph/passes/pass.h"
#include "hone/session/compile_options.h"
#include "hone/session/summary.h"

namespace hone {

struct Inspection {
  graph::Graph graph;  // optimized
  graph::TaskList tasks;
  graph::MemoryPlan plan;
  std::vector<TaskSummary> summaries;  // per TaskList::groups, schedules stored or predicted
  int64_t weight_bytes = 0;            // of distinct constants, before they are packed
  std::set<std::string> files;         // that it was read from
};

struct InspectOptions {
  CompileOptions compile;
  graph::OnChange on_change;  // of the graph, by a pass; first called for pass "import"
};

[[nodiscard]] Result<Inspection> inspect(const std::string& model,
                                         const InspectOptions& options = {});

// The tasks of a model by their keys, and how often each occurs; nothing is predicted but whether
// two become one.
struct TaskCounts {
  std::string model;  // its name
  std::map<uint64_t, int> tasks;
  std::set<std::string> files;  // that it was read from
};
[[nodiscard]] Result<TaskCounts> count_tasks(const std::string& model,
                                             const CompileOptions& options = {});

}  // namespace hone
