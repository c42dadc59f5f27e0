// tune.h - compiles and tunes graphs that are imported already. Models in files are compiled and
// tuned by hone/compile.h and hone/tune.h, whose functions are here, too.
#pragma once

#include <string>

#include "hone/compile.h"
#include "hone/model.h"
#include "hone/search/policy.h"
#include "hone/session/compile_options.h"
#include "hone/session/session.h"
#include "hone/tune.h"

namespace hone {

[[nodiscard]] Result<CompileSummary> compile(graph::Graph graph, const std::string& output,
                                             const CompileOptions& options = {});
[[nodiscard]] Result<TuneSummary> tune(graph::Graph graph, const std::string& output,
                                       const TuneOptions& options = {});

// Tells a strategy of the options, before it makes searchers, what it wants to know of the device.
[[nodiscard]] Status load_sensitivities(const Session& session, const CompileOptions& options,
                                        search::Policy& policy);

}  // namespace hone
