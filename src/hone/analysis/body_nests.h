// analysis/body_nests.h - stages with a body of statements (sorts, scans, gathers) as flat loop
// nests, one for each store. build_nests() leaves these stages out.
//
// The loops are those of the schedule and, inside them, those of the body; loops of the schedule
// that it moves inside the body's (sink) come last. An index that no linear form of the loops gives
// (it is read from memory, or clamped) may reach the whole dimension.
#pragma once

#include "hone/analysis/nest.h"

namespace hone::analysis {

inline constexpr int64_t kUnknownTrips = 32;  // trips of a loop whose length depends on data

// Returns the nests in the order of the stages and of their statements. A loop of the body has the
// numbers from the stage's loops on as NestLoop::loop, in the order of the text, so the same loop
// has the same number in all nests of a stage. It is a reduction for a store that reads what it
// writes and does not move with it. Code below a condition that reads memory counts as run for half
// of the points.
[[nodiscard]] std::vector<Nest> build_body_nests(const schedule::State& state,
                                                 const schedule::Bounds& bounds);

}  // namespace hone::analysis
