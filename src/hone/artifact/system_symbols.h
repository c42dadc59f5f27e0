// artifact/system_symbols.h - the names that the system's C libraries define. If a library exports
// one of them, it silently replaces it in a program, or is replaced by it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hone::artifact {

// Returns the file name of the library among libc, libm, libpthread, libdl, librt and the loader
// that defines this symbol, or nothing. All versions of the symbol count, as older programs use
// them; with `linkable_only`, only the one that programs are linked to today.
[[nodiscard]] std::optional<std::string> system_library_of(std::string_view symbol,
                                                           bool linkable_only = false);

}  // namespace hone::artifact
