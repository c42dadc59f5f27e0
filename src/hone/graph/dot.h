// graph/dot.h - draws a model's tasks in Graphviz's language. Each task is a box around its nodes,
// equal tasks have one colour, and views are outside the boxes.
#pragma once

#include "hone/graph/tasks.h"

namespace hone::graph {

// Draws `tasks`, which were extracted from `graph`.
[[nodiscard]] std::string to_dot(const Graph& graph, const TaskList& tasks);

}  // namespace hone::graph
