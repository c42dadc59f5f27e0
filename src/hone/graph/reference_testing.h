// graph/reference_testing.h - runs a whole model by the naive programs of its tasks and the
// interpreter, in the arena of its memory plan. It is the oracle for small graphs.
#pragma once

#include "hone/graph/memory_plan.h"

namespace hone::graph {

// Runs the tasks on `inputs`, which are in the order of tasks.inputs, and if the shapes vary, the
// sizes may be behind them; else they are the largest. It is an error if a task writes outside its
// window.
[[nodiscard]] Result<std::vector<Tensor>> run_reference(const TaskList& tasks,
                                                        const MemoryPlan& plan,
                                                        const std::vector<Tensor>& inputs);
// Optimizes a copy of the graph, extracts its tasks, plans memory and runs.
[[nodiscard]] Result<std::vector<Tensor>> run_reference(
    const Graph& graph, const std::vector<Tensor>& inputs,
    const std::vector<std::string>& skip_passes = {});

}  // namespace hone::graph
