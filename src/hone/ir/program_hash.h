// ir/program_hash.h - what a program does, as a number: the same for programs that differ only in
// the names and addresses of variables and buffers, in the order of integer sums, which follows
// from names, or in marks to peel loops, which count for nothing once that is done. Machine code
// need not be made of both.
#pragma once

#include <compare>

#include "hone/ir/stmt.h"

namespace hone::ir {

[[nodiscard]] uint64_t hash(const Program& program);

// A program as it is written but for names: two with the same one become the same machine code.
// 128 bits, so that nobody has to compare the programs.
struct Identity {
  uint64_t first = 0, second = 0;
  friend auto operator<=>(const Identity&, const Identity&) = default;
};
[[nodiscard]] Identity identity(const Program& program);

}  // namespace hone::ir
