// compile_graph.h - a graph becomes a library without measuring.
#pragma once

#include <string>

#include "hone/model/knowledge.h"

namespace hone {

// A model before anything is measured.
struct Untuned {
  ModelTasks model;
  Knowledge knowledge;
  std::vector<schedule::Steps> schedules;  // by group
};
[[nodiscard]] Result<Untuned> make_untuned(graph::Graph graph, const CostModelPtr& cost,
                                           db::Store* store, const CompileOptions& options,
                                           ThreadPool& pool);

// By the best schedules that are known or that `cost` predicts. Bad input is Code::kInvalid,
// kNotFound or kUnsupported; nothing is written then. `start`: when the caller began, on
// real_clock(); it has checked the output (check_output).
[[nodiscard]] Result<CompileSummary> compile_graph(graph::Graph graph, const std::string& output,
                                                   const CompileOptions& options,
                                                   const CostModelPtr& cost, double start);

}  // namespace hone
