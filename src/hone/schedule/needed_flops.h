// schedule/needed_flops.h - a lower bound of the arithmetic of all schedules with the same
// algorithm.
#pragma once

#include "hone/schedule/state.h"

namespace hone::schedule {

// Returns compute::flops() less the products with known zeros around an input (ir::Param::zeros,
// where the other factor is constant), and less the terms of sums behind the last one that matters
// (compute::Stage::until) together with all that only such terms read. Where these cannot be
// determined, nothing is subtracted.
[[nodiscard]] double needed_flops(const State& state);

}  // namespace hone::schedule
