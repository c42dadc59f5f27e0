// ir/passes/limit_loops.h - leaves out iterations that only compute what a run does not need whose
// sizes are smaller than the shapes that a program was made for.
//
//   parallel t in 0..86 { for i in 0..6 { y[t * 6 + i] = .. } }     y needed below sizes[2] only
//   ->
//   parallel t in 0..86 { if (t * 6 < sizes[2]) { for i in 0..6 { .. } } }
//
// Tiles that are needed in each of many rows of tiles become the first ones of all
// (ir/passes/renumber_tiles.h). A serial loop gets an end that the sizes decide; one over merged
// dimensions becomes one for each of them, and a long vectorized one a loop of chunks
// (ir/passes/loop_digits.h). Loops of a register tile, which are unrolled or vectorized, stay
// whole, so that the tiles' code is the same as without sizes. What is not needed says
// ir/passes/size_limits.h. If the program does not have the sizes yet, they become its last param.
#pragma once

#include <limits>

#include "hone/ir/passes/size_limits.h"

namespace hone::ir {

// Tiles of a phase from ceil(size / divisor) * multiplier on compute nothing, where the size is
// element `form` of the sizes. The form is -1 if all tiles may compute something.
struct TileLimit {
  int form = -1;
  int64_t divisor = 1, multiplier = 1;
  bool operator==(const TileLimit&) const = default;
};

struct LimitedProgram {
  Program program;
  std::vector<TileLimit> tiles;  // one per phase
  bool changed = false;          // false: the program is as it was
};

struct LimitOptions {
  // A serial loop ends early only if an iteration, or all of them together, store so many elements;
  // less costs more to test than it saves.
  int64_t min_stores = 128, min_stores_of_all = 1024;
  // A loop of which the size alone says where it ends needs no more stores of all iterations.
  int64_t min_stores_of_known_end = 64;
  // From this form on, sizes are known to the kernel alone: who calls it asks for all tiles, so
  // tiles keep their numbers, and those that are not needed end at once.
  int first_of_kernel = std::numeric_limits<int>::max();
};

[[nodiscard]] BufferPtr make_sizes(int64_t number);  // i64[number]
// `limits` are those of the program's outputs. `sizes` is the input with the sizes, which the
// program may have already, as its loops over terms of reductions end there.
[[nodiscard]] LimitedProgram limit_loops(Program program, const std::vector<ParamLimit>& limits,
                                         const BufferPtr& sizes, const LimitOptions& options = {});

}  // namespace hone::ir
