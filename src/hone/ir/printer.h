// ir/printer.h - programs as text (docs/formats/ir.md). parse_program(print(p)) is equivalent to p.
//
// Every variable and buffer gets a name of its own: its name made an identifier, with a suffix
// where two would collide. Floats print with the digits that give the same value back.
#pragma once

#include <string>

#include "hone/ir/stmt.h"

namespace hone::ir {

[[nodiscard]] std::string print(const Program& program);
[[nodiscard]] std::string print(const Stmt& s);
[[nodiscard]] std::string print(const Expr& e);

// Words that no variable or buffer may be called.
[[nodiscard]] bool is_reserved(std::string_view word);
[[nodiscard]] bool is_identifier(
    std::string_view word);  // [A-Za-z_][A-Za-z0-9_]*, parts joined by dots

}  // namespace hone::ir
