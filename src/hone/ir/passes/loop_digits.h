// ir/passes/loop_digits.h - cuts loops so that what a run needs of them are the first iterations:
//
//   for i in 0..4 * 128 { if (i % 4 * 32 < size) { f(i) } }
//   ->
//   for i_0 in 0..128 { for i_1 in 0..ceil(size / 32) { f(i_0 * 4 + i_1) } }
#pragma once

#include <optional>

#include "hone/ir/passes/size_needs.h"

namespace hone::ir {

// Cuts a serial loop into one loop per digit of its number, where digits decide whether a run needs
// an iteration. Nothing if none do, or if a need depends on the number in another way. The loops
// that are made have no limits yet. `ranges` knows what is around the loop.
[[nodiscard]] std::optional<Stmt> cut_into_digits(const StmtNode& loop,
                                                  const std::vector<Need>& needs, Ranges& ranges);

// Cuts a vectorized loop into a serial loop of vectorized ones, and one of what is left, as a run
// may need its first elements only. Nothing if it is short, or if it has other loops in it, or
// registers, which have no addresses.
[[nodiscard]] std::optional<Stmt> cut_into_chunks(const StmtNode& loop, Ranges& ranges);

}  // namespace hone::ir
