// ir/passes/partition_loops.h - removes guards from inner loops by changing the loops' ranges.
//
// A loop with peel = true is split where the affine conditions inside (of ifs and selects) become
// provably true, or false, for all inner iterations:
//   for i in 0..N peel { .. if (i*4 + j < M) S .. }  ->  for i in 0..a { S }  for i in a..N { if ..
//   S }
// into at most three parts. The middle one has no guards; a part at an end that stores nothing is
// left out. A loop that is wholly under a guard on its own variable is tightened:
//   for i in 0..E { if (i + 2 < T) S }  ->  for i in 0..min(E, T - 2) { S }   (constants only)
// A serial loop without the mark is split, too, if a loop inside of it tests the points of an
// unrolled tile in each iteration, as the sum of a register tile does that does not divide its
// block. A parallel loop is never split, and it is tightened only from above, as tiles start at 0.
// With peel = true it tests once per tile whether all conditions inside hold:
//   parallel t in 0..N peel { for i { if (t*4 + i < M) S } }
//     ->  parallel t in 0..N { if (t*4 + 3 < M) { for i { S } }  if (!(t*4 + 3 < M)) { .. } }
// If exactly one tile fails the conditions, the second part is for that tile, whose number is
// known. Loops that are split, or that test, lose the mark, so the pass is idempotent.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

struct PartitionOptions {
  // Loops are split, and bodies doubled, only while the whole program has at most this many
  // statements.
  int64_t max_statements = 4096;
};

// Partitions loops. It runs hoist_guards and simplify as it goes, and its result is simplified.
[[nodiscard]] Program partition_loops(Program program, const PartitionOptions& options = {});

}  // namespace hone::ir
