// session/limit_tasks_testing.h - the limits of all tasks of a model for ranges.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "hone/graph/import_onnx.h"
#include "hone/graph/passes/pass.h"
#include "hone/graph/tasks.h"
#include "hone/graph/test_model.h"
#include "hone/schedule/lower.h"
#include "hone/session/limit_tasks.h"

namespace hone::testing {

// The tasks of a model for ranges, and their limits.
struct Limited {
  graph::TaskList tasks;
  std::vector<KernelLimits> limits;
  std::vector<std::optional<ir::RunNeed>> runs;
  std::vector<std::vector<int>> sizes;
};
using Ranges = std::map<std::string, ShapeRange>;
inline Limited limited(const graph::TestModel& model, const ScheduledCalls& calls,
                       const Ranges& ranges) {
  const std::string bytes = model.bytes();
  Result<graph::Graph> graph = graph::import_onnx_bytes(bytes.data(), bytes.size(), "m.onnx", "",
                                                        {.ranges = ranges, .open_ranges = true});
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_TRUE(graph::optimize(*graph, {}).ok());
  Limited made{*graph::extract_tasks(*graph), {}, {}, {}};
  CallLimits found = *limits_of_calls(made.tasks, calls);
  made.limits = std::move(found.kernels);
  made.runs = std::move(found.runs);
  made.sizes = std::move(found.sizes);
  return made;
}
inline Limited limited(const graph::TestModel& model, bool mixes = false,
                       const Ranges& ranges = {}) {
  ScheduledCalls calls;
  calls.mixes = [mixes](const graph::TaskCall&) { return mixes; };
  calls.lower = [](const graph::TaskCall&, const compute::Dag& dag) -> Result<search::ProgramPtr> {
    HONE_ASSIGN_OR_RETURN(ir::Program program, schedule::lower(dag, {}));
    return std::make_shared<const ir::Program>(std::move(program));
  };
  return limited(model, calls, ranges);
}

}  // namespace hone::testing
