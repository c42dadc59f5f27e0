// ir/passes/prefetch_blocks.h - prefetches what register tiles read one block ahead.
//
// A product reads its weights block by block, and each block again for every register tile that
// needs it: from the second-level cache, but for the first time from wherever the weights lie.
// While the loops work on one block, the next one is prefetched in equal parts:
//   for m in 0..16 {                         // the block is read 16 times
//     for k in 0..192 {
//       prefetch_l2 W[0, 0, n * 36864 + (m * 192 + k) * 12 + 36864]
//       .. W[n, k, ..] ..
// A block that is not read again (rows of the other operand, Winograd's transformed image and
// weights) is prefetched while the one before it is read, into the first-level cache: the
// hardware's prefetchers stop at each page and learn few streams at a time. The last block
// prefetches what lies behind the buffer, which is often the next kernel's.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

struct PrefetchOptions {
  int64_t min_reuse = 3;  // times that a block is read, to count as one that is read again
  int64_t max_block = int64_t{1} << 20;  // bytes: of more, the caches keep too little
  // Blocks that are read once: only of buffers of so many bytes, as smaller ones stay near, and
  // only if the register tile uses an element so often; below, memory is the limit and no hint
  // helps.
  int64_t min_stream = int64_t{1} << 18;
  int64_t min_rows = 4;
};

// Adds the hints to every innermost serial loop that reads so. Prepare phases stay as they are.
[[nodiscard]] Program prefetch_blocks(Program program, const PrefetchOptions& options = {});

}  // namespace hone::ir
