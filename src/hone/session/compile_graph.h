// compile_graph.h - compiles a graph to a library without measuring anything.
#pragma once

#include <string>

#include "hone/session/schedule_sources.h"

namespace hone {

// A model before it is tuned: its tasks, what is known about them, and a schedule for each.
struct Untuned {
  ModelTasks model;
  ScheduleSources sources;
  std::vector<schedule::Steps> schedules;  // one per group
};
[[nodiscard]] Result<Untuned> make_untuned(Session& session, graph::Graph graph,
                                           const CompileOptions& options);

// Writes a library with the best schedules that are known or that the session's cost model
// predicts. Bad input is Code::kInvalid, kNotFound or kUnsupported, and nothing is written then.
// `start` is when the caller began, on real_clock(). The caller has checked the output
// (check_output).
[[nodiscard]] Result<CompileSummary> compile_graph(Session& session, graph::Graph graph,
                                                   const std::string& output,
                                                   const CompileOptions& options, double start);

}  // namespace hone
