// codegen/system_symbols.h - which names the system's C libraries define. A library that exports
// one of them would take its place in a program, or be replaced by it, without a word from the
// linker.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hone::codegen {

// The file name of the library among libc, libm, libpthread, libdl, librt and the loader that
// defines this symbol: in any version of it, as programs that are linked already use old ones, or,
// with `linkable_only`, in the one that a program of today is linked to.
[[nodiscard]] std::optional<std::string> system_library_of(std::string_view symbol,
                                                           bool linkable_only = false);

}  // namespace hone::codegen
