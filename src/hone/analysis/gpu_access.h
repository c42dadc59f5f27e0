// analysis/gpu_access.h - how the threads of a GPU access a buffer: what one instruction of a warp
// moves, how often shared memory has to be asked for it, and the bytes that a cache has to hold.
#pragma once

#include "hone/analysis/nest.h"

namespace hone::analysis {

inline constexpr int kSectorBytes = 32;  // unit of traffic between memory, L2 and an SM

// Returns whether each thread has such storage for itself, in registers or beyond.
[[nodiscard]] bool is_private(ir::Scope scope);

// A load or store of all lanes of a warp.
struct WarpAccess {
  double elements = 1;     // elements of each lane, at most 16 bytes of neighbours
  double sectors = 1;      // sectors of global memory that the lanes touch together
  double wavefronts = 1;   // cycles of shared memory: lanes that want other words of a bank wait
  int64_t lane_bytes = 0;  // distance between the first two lanes
};
[[nodiscard]] WarpAccess warp_access(const Nest& nest, const NestAccess& access, int warp);

// The iterations that each loop of a nest runs; 1 for a loop that stands still.
using Extents = SmallVector<int64_t, 16>;
// Returns the bytes of whole sectors that an access touches.
[[nodiscard]] double sector_bytes(const NestAccess& access, const Extents& extents);

// The loops of a nest that a thread, or the block as a whole, runs one iteration after the other,
// outermost first, without the body and the loops over blocks. Threads run in step, so all of them
// use a cache at the same time.
[[nodiscard]] SmallVector<size_t, 8> serial_loops(const Nest& nest, size_t body);

// The traffic of one block with L2 if it can keep `cache_bytes`: `extents` are those of the loops
// inside the block's share of work that still run, and the loops before them run `times` times.
struct CachedLoops {
  Extents extents;
  double times = 1;
  bool fits = false;  // else not even one pass through the body of all threads does
};
[[nodiscard]] CachedLoops cached_loops(const Nest& nest, size_t body, double cache_bytes);

}  // namespace hone::analysis
