// artifact/static_library.h - makes a static library of one relocatable object in which all symbols
// but an interface are local, so that two such libraries can be linked into one program.
//
// LLVM's ObjCopy and ArchiveWriter could do this, but read the object, which holds the weights, as
// a whole: of an object of 1 GiB they need 2.1 GiB of memory and 14.4 s, this code 4 MiB and 2.4 s,
// because it changes the tables of symbols in place and copies the rest piece by piece.
#pragma once

#include <string>
#include <vector>

#include "hone/base/status.h"

namespace hone::artifact {

// Changes the object in place: every symbol that it defines becomes local, except those of
// `exports`, and its section groups are no longer merged with equal ones of other objects. It is an
// error if a symbol of `exports` or `required` is not defined.
[[nodiscard]] Status localize_symbols(const std::string& object,
                                      const std::vector<std::string>& exports,
                                      const std::vector<std::string>& required);

// Writes an `ar` archive of the one object, with an index of these symbols.
[[nodiscard]] Status write_archive(const std::string& object,
                                   const std::vector<std::string>& symbols,
                                   const std::string& path);

}  // namespace hone::artifact
