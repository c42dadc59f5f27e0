// tools/hone/build_report.h - what `compile` and `tune` say when they are done.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

#include "hone/tune.h"

namespace hone::tool {

// Per distinct kernel: how often it occurs, where its schedule comes from, its time.
[[nodiscard]] std::string kernel_table(const CompileSummary& summary);
[[nodiscard]] nlohmann::ordered_json to_json(const CompileSummary& summary);

}  // namespace hone::tool
