// cost/bound_scores.h - the shares of a candidate's time that memory and arithmetic take (Fasor's
// memory-bound and core-bound scores). They are from hardware counters if these were read when it
// was measured, else from the static analysis. Files say which.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "hone/cost/cost_model.h"
#include "hone/trial/bounds.h"

namespace hone::cost {

using trial::BoundScores;

// Returns the scores of the static analysis: the shares of transfers and arithmetic in the time
// that they would need one after the other. Their sum is 1.
[[nodiscard]] BoundScores static_bounds(const Query& query);
// Returns `counted` (trial/bounds.h) if it is known, else the scores of the static analysis.
[[nodiscard]] BoundScores bound_scores(const Query& query,
                                       const std::optional<BoundScores>& counted);
// Returns where the scores of `all` schedules come from: "counters", "static" or "mixed".
[[nodiscard]] std::string_view bounds_source(int64_t counted, int64_t all);

}  // namespace hone::cost
