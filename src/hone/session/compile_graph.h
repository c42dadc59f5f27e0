// compile_graph.h - a graph becomes a library without measuring.
#pragma once

#include <string>

#include "hone/session/knowledge.h"

namespace hone {

// A model before anything is measured.
struct Untuned {
  ModelTasks model;
  Knowledge knowledge;
  std::vector<schedule::Steps> schedules;  // by group
};
[[nodiscard]] Result<Untuned> make_untuned(Session& session, graph::Graph graph,
                                           const CompileOptions& options);

// Writes a library of the best schedules that are known or that the session's cost model predicts.
// Bad input is Code::kInvalid, kNotFound or kUnsupported; nothing is written then. `start`: when
// the caller began, on real_clock(); it has checked the output (check_output).
[[nodiscard]] Result<CompileSummary> compile_graph(Session& session, graph::Graph graph,
                                                   const std::string& output,
                                                   const CompileOptions& options, double start);

}  // namespace hone
