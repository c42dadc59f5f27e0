// tools/hone/unused_options.h - options that would do nothing beside the others are refused: who
// gives one expects something of it. But for --seed and --threads, which scripts give to trees and
// nets alike: they are read, and do nothing where there is nothing to draw or to divide.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "hone/base/status.h"

namespace hone::tool {

// Those of a group of --help.
[[nodiscard]] std::vector<std::string> options_of_group(const CLI::App& app,
                                                        const std::string& group);

// For where `options` would do nothing: an error if any of them was given, which names these, says
// what they are for (`use`) and what there is here (`found`).
[[nodiscard]] Status check_unused(const CLI::App& app, const std::vector<std::string>& options,
                                  std::string_view use, std::string_view found);

}  // namespace hone::tool
