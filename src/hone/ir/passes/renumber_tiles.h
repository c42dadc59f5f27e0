// ir/passes/renumber_tiles.h - makes the tiles that a run of smaller sizes needs the first ones of
// a parallel loop, where they are the first ones of each row of tiles only:
//
//   parallel t in 0..32 * 128 { if (t % 128 * 4 < size) { f(t // 128, t % 128) } }
//   ->
//   parallel t in 0..32 * 128 { if (t // m < 32) { f(t // m, t % m) } }      m = (size + 3) // 4
//
// The tiles from 32 * m on compute nothing, so a run leaves them out, and does not ask each of them
// as it would without this.
#pragma once

#include <optional>

#include "hone/ir/passes/size_needs.h"

namespace hone::ir {

// The inner digit of the number of a tile, which decides whether a run needs the tile.
struct InnerDigit {
  int form = 0;
  int64_t rows = 0, tiles = 0;  // rows of tiles, and tiles of each row in the largest run
  int64_t divisor = 1;          // a run needs the first ceil(size / divisor) of each row
};

// Returns the digit on which a need depends; nothing if there is none, if there is one row alone,
// or if the tiles of a row are no quotient of the size.
[[nodiscard]] std::optional<InnerDigit> inner_digit(const StmtNode& loop, const Need& need,
                                                    const Ranges& ranges);
// Numbers the tiles of the loop so that those that a run needs are the first ones. `ranges` knows
// what is around the loop.
[[nodiscard]] Stmt renumbered(const StmtNode& loop, const InnerDigit& digit, const BufferPtr& sizes,
                              Ranges& ranges);

}  // namespace hone::ir
