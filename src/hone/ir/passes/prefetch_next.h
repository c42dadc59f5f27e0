// ir/passes/prefetch_next.h - prefetches the data of a loop's next iteration while the end of this
// one computes.
//
// A block of rows of a depthwise convolution with the product behind it: the first nest waits for
// memory, the last one for arithmetic, and neither overlaps the other.
//   for block in 0..14 {
//     for row, column, .. { windows[..] = .. data[block * 8 + row, ..] .. }
//     for tile in 0..28 {
//       for k in 0..18 {                                  // the lines that the next block has
//         prefetch_l2 data[0, 0, block * 66816 + (tile * 18 + k) * 272 + 75168]  // beyond this one
//         ..
// Where the last nest reads the buffer itself, where it is small or the loop jumps over most of it,
// nothing is added. The last iteration prefetches what lies behind the buffer.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

struct PrefetchNextOptions {
  int64_t min_bytes = int64_t{1} << 18;  // of a buffer: smaller ones stay near
  int64_t max_bytes = int64_t{1} << 19;  // in an iteration: the cache has to keep them
  int64_t max_lines = 32;                // in a step: beyond, hints are dropped
};

// Adds the hints to every phase but those that prepare constants.
[[nodiscard]] Program prefetch_next(Program program, const PrefetchNextOptions& options = {});

}  // namespace hone::ir
