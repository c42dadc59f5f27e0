// analysis/gpu_registers.h - registers that what a block computes needs at the same time (internal
// to analysis).
#pragma once

#include "hone/schedule/bounds.h"

namespace hone::analysis {

// Returns the registers of 32 bits that a thread needs for the results of the stages that are
// computed inside of a root stage: the most of those that are alive at a time. A result is alive
// from where its computation begins, with all that is computed inside of it, to the end of its last
// reader; in a loop that does not compute it anew, to the end of the loop. `threads`: of the block.
[[nodiscard]] double live_registers(const schedule::State& state, const schedule::Bounds& bounds,
                                    int root, double threads);

}  // namespace hone::analysis
