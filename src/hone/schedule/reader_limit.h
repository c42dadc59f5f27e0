// schedule/reader_limit.h - which points of a stage its only reader needs, where the reader's loops
// run past its region: a tile of 32 rows in steps of 12 needs 8 of the last step. The limit does
// not move with the tile, unlike the end of the axis, so partition_loops (ir/passes) can split the
// loop over the steps there, and no test is left inside.
#pragma once

#include <optional>

#include "hone/schedule/bounds.h"

namespace hone::schedule {

// A point is needed where value < end; `value` counts from the beginning of the reader's region.
struct ReaderLimit {
  Linear value;
  int64_t end = 0;
};

// Returns the limit of an axis of a stage that is computed inside of its reader's loops. Points
// within it are within the axis, too. Returns nothing if the stage is computed elsewhere, if there
// are several readers, if the reader tests no region along this axis, or if that region may itself
// pass the axis' end.
[[nodiscard]] std::optional<ReaderLimit> reader_limit(const State& state, const Bounds& bounds,
                                                      int s, int axis);

}  // namespace hone::schedule
