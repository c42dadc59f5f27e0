// backend/cpu/check_symbols.h - checks that generated code calls only functions that exist when a
// model is linked on any machine, which are those of libc and libm. Functions of a compiler's own
// library, which LLVM may call (conversions of half precision, division of 128 bits), do not.
#pragma once

#include <string>

#include "hone/base/status.h"
#include "hone/ir/stmt.h"

namespace hone::backend::cpu {

// Checks an object of this program. An error, which is a bug, names the first symbol that it needs
// and that neither libc nor libm has. Functions that the program itself calls by name are not
// checked.
[[nodiscard]] Status check_symbols(const std::string& object, const ir::Program& program);

}  // namespace hone::backend::cpu
