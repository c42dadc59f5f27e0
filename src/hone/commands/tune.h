// tune.h - compiles and tunes graphs that are imported already. Models in files are compiled and
// tuned by hone/compile.h and hone/tune.h, whose functions are here, too.
#pragma once

#include <string>

#include "hone/compile.h"
#include "hone/model.h"
#include "hone/session/compile_options.h"
#include "hone/tune.h"

namespace hone {

[[nodiscard]] Result<CompileSummary> compile(graph::Graph graph, const std::string& output,
                                             const CompileOptions& options = {});
[[nodiscard]] Result<TuneSummary> tune(graph::Graph graph, const std::string& output,
                                       const TuneOptions& options = {});

}  // namespace hone
