// schedule/needed_flops.h - the arithmetic that no schedule of the same algorithm can leave out.
#pragma once

#include "hone/schedule/state.h"

namespace hone::schedule {

// compute::flops() less products with the known zeros around an input (ir::Param::zeros, where the
// other factor is constant) and less what lies behind the last term of a sum that matters
// (compute::Stage::until), with all that only such terms read. Where that cannot be told, all.
[[nodiscard]] double needed_flops(const State& state);

}  // namespace hone::schedule
