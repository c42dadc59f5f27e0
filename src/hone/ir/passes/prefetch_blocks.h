// ir/passes/prefetch_blocks.h - prefetches the next block of what register tiles read.
//
// A matrix product reads its weights block by block, and reads each block again for every register
// tile that needs it. Later reads come from the second-level cache, the first one from wherever the
// weights are. While the loops work on one block, they prefetch the next one in equal parts:
//   for m in 0..16 {                         // the block is read 16 times
//     for k in 0..192 {
//       prefetch_l2 W[0, 0, n * 36864 + (m * 192 + k) * 12 + 36864]
//       .. W[n, k, ..] ..
// A block that is read only once (rows of the other operand, Winograd's transformed image and
// weights) is prefetched into the first-level cache while the block before it is read: the
// hardware's prefetchers stop at each page and follow few streams at a time. The last block
// prefetches the memory behind the buffer, which often belongs to the next kernel.
#pragma once

#include <vector>

#include "hone/ir/stmt.h"

namespace hone::ir {

// A dimension of the results: it has `now` elements in a run, of `most` for which the program was
// made.
struct RunExtent {
  Expr now;
  int64_t most;
};

struct PrefetchOptions {
  int64_t min_reuse = 3;                 // a block that is read this often counts as read again
  int64_t max_block = int64_t{1} << 20;  // bytes; the caches keep too little of a larger block
  // Blocks that are read once are prefetched only if their buffer has this many bytes, as smaller
  // buffers stay in the caches, and only if the register tile uses an element this often; below
  // that, memory bandwidth is the limit and hints do not help.
  int64_t min_stream = int64_t{1} << 18;
  int64_t min_rows = 4;
  // The hints come with a block's first reads, one for so many multiplications of vectors at most,
  // instead of in equal parts with all of them: a run of a smaller size ends after some reads.
  // Where these extents tell how many reads a run has, the hints are spread over those, as memory
  // is slower than hints can ask for it; later reads have hints for the last lines, which
  // cost little.
  bool is_early = false;
  int64_t min_work = 16;
  std::vector<RunExtent> run_extents;
};

// Adds the hints to every innermost serial loop with such reads. Phases that prepare constants stay
// as they are.
[[nodiscard]] Program prefetch_blocks(Program program, const PrefetchOptions& options = {});

}  // namespace hone::ir
