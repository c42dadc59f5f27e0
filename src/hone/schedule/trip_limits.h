// schedule/ends.h - loops that end early, because nobody needs the rest of an axis: the keys that a
// causal mask hides from a block of queries.
//
// It starts at the reductions that say where their terms end (compute::Stage::until) and goes on to
// what they read, as long as all readers of a buffer end early. Ends are rounded up to whole
// iterations of the loop that ends, so a reader never sees what was not computed. What cannot end
// early runs to the end of its axis, which is always right.
#pragma once

#include "hone/schedule/bounds.h"

namespace hone::schedule {

// Sets StageBounds::ends of all stages; everything else must be known already.
void infer_ends(const State& state, Bounds& bounds);

}  // namespace hone::schedule
