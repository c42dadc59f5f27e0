// graph/dot.h - a drawing of a model's tasks in Graphviz's language: each task is a box around its
// nodes, equal tasks have one colour, views stand outside.
#pragma once

#include "hone/graph/tasks.h"

namespace hone::graph {

// `tasks` are those extracted from `graph`.
[[nodiscard]] std::string to_dot(const Graph& graph, const TaskList& tasks);

}  // namespace hone::graph
