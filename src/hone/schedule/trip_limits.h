// schedule/trip_limits.h - limits the trip counts of loops over points that nobody needs, such as
// the keys that a causal mask hides from a block of queries.
//
// The limits start at the reductions that declare where their terms end (compute::Stage::until) and
// propagate to what these read, if all readers of a buffer have a limit. Limits are rounded up to
// whole iterations of the loop, so a reader never sees elements that were not computed. A loop
// without a limit runs to the end of its axis, which is always correct.
//
// A reduction may also end where the sizes of a run say, which is a multiple of an element of an
// input and a constant. No task has such an end: it is added to lower a kernel of a model whose
// shapes vary (session/limit_tasks.h), so keys, schedules, records and features do not see it.
#pragma once

#include "hone/schedule/bounds.h"

namespace hone::schedule {

// A term of TripLimit::limit whose stage is this one is a size of the run, and its loop is the
// index of that in the input with the sizes.
inline constexpr int kSizeTerm = -1;
// Returns what such a term stands for.
[[nodiscard]] ir::Expr size_of_run(const State& state, const Term& term);

// Sets StageBounds::trip_limits of all stages. All other bounds must be set already.
void infer_trip_limits(const State& state, Bounds& bounds);

}  // namespace hone::schedule
