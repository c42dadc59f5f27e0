// codegen/llvm/check_symbols.h - generated code may call only what is there when a model is linked,
// on any machine: functions of libc and libm. What LLVM takes from a compiler's own library
// (conversions of half precision, division of 128 bits) is not.
#pragma once

#include <string>

#include "hone/base/status.h"
#include "hone/ir/stmt.h"

namespace hone::codegen {

// An error, which is a bug, names the first symbol that an object of this program needs and that
// neither libc nor libm has. The functions that the program calls by name are its own business.
[[nodiscard]] Status check_symbols(const std::string& object, const ir::Program& program);

}  // namespace hone::codegen
