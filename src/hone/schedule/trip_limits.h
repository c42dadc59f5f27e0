// schedule/trip_limits.h - limits the trip counts of loops over points that nobody needs, such as
// the keys that a causal mask hides from a block of queries.
//
// The limits start at the reductions that declare where their terms end (compute::Stage::until) and
// propagate to what these read, if all readers of a buffer have a limit. Limits are rounded up to
// whole iterations of the loop, so a reader never sees elements that were not computed. A loop
// without a limit runs to the end of its axis, which is always correct.
#pragma once

#include "hone/schedule/bounds.h"

namespace hone::schedule {

// Sets StageBounds::trip_limits of all stages. All other bounds must be set already.
void infer_trip_limits(const State& state, Bounds& bounds);

}  // namespace hone::schedule
