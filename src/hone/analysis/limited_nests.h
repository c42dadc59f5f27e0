// analysis/limited_nests.h - the loop nests of a schedule in a run of smaller sizes: loops that are
// neither unrolled nor vectorized end where the elements end that the run needs
// (ir/passes/limit_loops.h).
#pragma once

#include <span>

#include "hone/analysis/nest.h"

namespace hone::analysis {

// The part of an axis of a stage (spatial axes, then reduce axes) that a run needs.
struct AxisPart {
  int stage = 0;
  int axis = 0;
  int64_t points = 0;  // the first so many, at least 1
  int64_t period = 0;  // the part is that of each so many points; 0: of all
};

// Shortens the loops of `nests`, which build_nests() made of the same state and bounds. A loop that
// several stages share is as long as the part of any stage among `parts` wants it.
void limit_nests(const schedule::State& state, const schedule::Bounds& bounds,
                 std::span<const AxisPart> parts, std::span<Nest> nests);

}  // namespace hone::analysis
