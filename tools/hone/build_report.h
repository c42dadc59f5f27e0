// tools/hone/build_report.h - what `compile` and `tune` say when they are done.
#pragma once

#include <string>

#include "hone/tune.h"

#include "json_text.h"
#include "limits.h"

namespace hone::tool {

// Per distinct kernel: how often it occurs, where its schedule comes from, its time.
[[nodiscard]] std::string kernel_table(const CompileSummary& summary, const Limits& limits);
[[nodiscard]] Json to_json(const CompileSummary& summary, const Limits& limits);

}  // namespace hone::tool
