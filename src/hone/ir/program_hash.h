// ir/program_hash.h - hashes of what a program does. They are equal for programs that differ only
// in the names and addresses of variables and buffers, in the order of integer sums (which depends
// on names), or in marks to peel loops (which have no effect once peeling is done). Programs with
// equal hashes share their machine code.
#pragma once

#include <compare>

#include "hone/ir/stmt.h"

namespace hone::ir {

[[nodiscard]] uint64_t hash(const Program& program);

// Hashes a program as it is written except for names: two programs with equal identities become the
// same machine code. It has 128 bits, so that nobody has to compare the programs themselves.
struct Identity {
  uint64_t first = 0, second = 0;
  friend auto operator<=>(const Identity&, const Identity&) = default;
};
[[nodiscard]] Identity identity(const Program& program);

}  // namespace hone::ir
