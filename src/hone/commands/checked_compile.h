// checked_compile.h - compiles a model without measuring and checks the library (internal).
#pragma once

#include <functional>

#include "hone/session/compile_graph.h"
#include "hone/summary.h"

namespace hone {

// Chooses the tasks and the schedules of the model.
using MakeUntuned = std::function<Result<Untuned>(const CompileOptions& options)>;

// Writes the library that `make` chooses schedules for. What makes it wrong is left out, and `make`
// is asked again. `imported` is the model before its passes; `start` is when the command began, on
// real_clock().
[[nodiscard]] Result<CompileSummary> compile_checked(const graph::Graph& imported,
                                                     const std::string& output,
                                                     CompileOptions options, double start,
                                                     const MakeUntuned& make);

}  // namespace hone
