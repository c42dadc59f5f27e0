// ir/printer.h - prints programs as text (docs/formats/ir.md). parse_program(print(p)) is
// equivalent to p.
//
// Every variable and buffer gets a unique name: its own name made an identifier, with a suffix
// where two would collide. Floats print with enough digits to give the same value back.
#pragma once

#include <string>

#include "hone/ir/stmt.h"

namespace hone::ir {

[[nodiscard]] std::string print(const Program& program);
[[nodiscard]] std::string print(const Stmt& s);
[[nodiscard]] std::string print(const Expr& e);

// Returns whether no variable or buffer may have this name.
[[nodiscard]] bool is_reserved(std::string_view word);
// Returns whether the word consists of parts [A-Za-z_][A-Za-z0-9_]* that are joined by dots.
[[nodiscard]] bool is_identifier(std::string_view word);

}  // namespace hone::ir
