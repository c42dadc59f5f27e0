// codegen/static_library.h - makes a static library of one relocatable object whose symbols, but
// for an interface, are its own: two such libraries link into one program.
#pragma once

#include <string>
#include <vector>

#include "hone/base/status.h"

namespace hone::codegen {

// Changes the object in place: every symbol that it defines becomes local, but for those of
// `exports`; its section groups are no longer shared with equal ones of other objects. An error if
// a symbol of `exports` or `required` is not defined.
[[nodiscard]] Status localize_symbols(const std::string& object,
                                      const std::vector<std::string>& exports,
                                      const std::vector<std::string>& required);

// An `ar` archive of the one object, with an index of the symbols that it offers.
[[nodiscard]] Status write_archive(const std::string& object,
                                   const std::vector<std::string>& symbols,
                                   const std::string& path);

}  // namespace hone::codegen
