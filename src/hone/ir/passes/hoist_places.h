// ir/passes/hoist_places.h - computes places that data decide once for a row, which then moves in
// vectors.
//
//   for i in 0..768 { y[n, i] = table[max(min(ids[n], 30521), 0), i] }
// becomes
//   alloc stack place: i64[] {
//     place[] = max(min(ids[n], 30521), 0)
//     for i.0 in 0..12 { vectorized i.1 in 0..64 { y[n, i.0 * 64 + i.1] = table[place[], ..] } }
//   }
// A place is an index, or an operand within one, that loads something and does not depend on the
// row's loop. It is computed before the outermost loop around the row that does not change it. One
// that is evaluated under a condition, or read from what the row writes, stays where it is. The row
// becomes vectors if all places are hoisted, all that it reads and writes lies side by side or is
// the same for all of its elements, and it reads of what it writes only the element that it writes.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

// Returns whether the pass would make vectors of a loop.
[[nodiscard]] bool is_row_at_place(const StmtNode& loop);

// Hoists in every phase except those that prepare constants.
[[nodiscard]] Program hoist_places(Program program);

}  // namespace hone::ir
