// ir/parser.h - parses what ir/printer.h writes (docs/formats/ir.md). Parsing is strict: every name
// must be declared, every type must fit, and the error says "line 3, column 14: ..." and what was
// expected. Any text is safe to parse, as depth is limited.
#pragma once

#include <string_view>

#include "hone/base/status.h"
#include "hone/ir/stmt.h"

namespace hone::ir {

inline constexpr int kMaxParseNesting = 200;  // levels of nested parentheses, calls and blocks
inline constexpr int kMaxParseDepth = 2000;   // depth of an expression's tree

[[nodiscard]] Result<Program> parse_program(std::string_view text);

}  // namespace hone::ir
