// tools/hone/code_text.h - the figures of a GPU's code (hone/code_figures.h) for people and for
// programs.
#pragma once

#include <optional>
#include <string>

#include "hone/code_figures.h"

#include "json_text.h"

namespace hone::tool {

// "96 registers a thread, 24 bytes of them spilled; 16.4k bytes of shared memory a block; 1.2k
// instructions: 512 multiply-adds, ..."
[[nodiscard]] std::string describe(const CodeFigures& code);
// An object with the names of the stores; null if nothing is known.
[[nodiscard]] Json code_json(const std::optional<CodeFigures>& code);

}  // namespace hone::tool
