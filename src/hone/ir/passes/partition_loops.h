// ir/passes/partition_loops.h - gets guards out of inner loops by changing the loops' ranges.
//
// A loop with peel = true is split where the affine conditions inside (of ifs and selects) become
// provably true, or false, for all inner iterations:
//   for i in 0..N peel { .. if (i*4 + j < M) S .. }  ->  for i in 0..a { S }  for i in a..N { if ..
//   S }
// into at most three parts, the middle one without guards; those at the ends that store nothing are
// left out. And a loop that is wholly under a guard on its own variable is tightened:
//   for i in 0..E { if (i + 2 < T) S }  ->  for i in 0..min(E, T - 2) { S }   (constants only)
// A parallel loop is never split, and tightened only from above: tiles start at 0. One with peel =
// true tests once a tile whether all conditions inside hold:
//   parallel t in 0..N peel { for i { if (t*4 + i < M) S } }
//     ->  parallel t in 0..N { if (t*4 + 3 < M) { for i { S } }  if (!(t*4 + 3 < M)) { .. } }
// where the second part is of a tile whose number is known, if only one does not fulfil them.
// Loops that are split, or test, lose the mark, so the passes are idempotent.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

struct PartitionOptions {
  // Loops are split, and bodies doubled, only while the whole program has at most this many
  // statements.
  int64_t max_statements = 4096;
};

// Runs hoist_guards and simplify as it goes; the result is simplified.
[[nodiscard]] Program partition_loops(Program program, const PartitionOptions& options = {});

}  // namespace hone::ir
