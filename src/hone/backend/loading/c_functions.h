// backend/loading/c_functions.h - the functions of libc and libm that generated code may call
// (backend/cpu/check_symbols.h), also in a program that is linked statically.
#pragma once

#include <string_view>

namespace hone::backend {

// Returns null if generated code does not call a function of this name.
[[nodiscard]] void* find_c_function(std::string_view name);

}  // namespace hone::backend
