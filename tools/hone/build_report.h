// tools/hone/build_report.h - what `compile` and `tune` say when they are done.
#pragma once

#include <string>

#include "hone/tune.h"

#include "json_text.h"

namespace hone::tool {

// Per distinct kernel: how often it occurs, where its schedule comes from, its time.
[[nodiscard]] std::string kernel_table(const CompileSummary& summary);
// Where the schedules come from, by number of kernels; a line of its own for each transferred one.
[[nodiscard]] std::string coverage(const CompileSummary& summary);
[[nodiscard]] Json to_json(const CompileSummary& summary);

}  // namespace hone::tool
