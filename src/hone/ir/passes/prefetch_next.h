// ir/passes/prefetch_next.h - prefetches the data of a loop's next iteration while the last nest of
// the current one computes.
//
// For example, a block of rows of a depthwise convolution is followed by a product. The first nest
// waits for memory and the last one for arithmetic, and neither overlaps the other. The last nest
// gets the hints:
//   for block in 0..14 {
//     for row, column, .. { windows[..] = .. data[block * 8 + row, ..] .. }
//     for tile in 0..28 {
//       for k in 0..18 {                                  // the lines that the next block has
//         prefetch_l2 data[0, 0, block * 66816 + (tile * 18 + k) * 272 + 75168]  // beyond this one
//         ..
// No hints are added if the last nest reads the buffer itself, if the buffer is small, or if the
// loop jumps over most of it. The last iteration prefetches the memory behind the buffer.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

struct PrefetchNextOptions {
  int64_t min_bytes = int64_t{1} << 18;  // smaller buffers stay in the caches
  int64_t max_bytes = int64_t{1} << 19;  // per iteration; the cache has to keep them
  // Per iteration of the last nest. If more lines were needed, no hints are added.
  int64_t max_lines = 32;
};

// Adds the hints to every phase except those that prepare constants.
[[nodiscard]] Program prefetch_next(Program program, const PrefetchNextOptions& options = {});

}  // namespace hone::ir
