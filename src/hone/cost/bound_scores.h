// cost/bound_scores.h - how much of a candidate's time memory and arithmetic take (Fasor's
// memory-bound and core-bound scores): what hardware counters said, where they were read when it
// was measured, else what the static analysis says. Files say which.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "hone/cost/cost_model.h"
#include "hone/trial/bounds.h"

namespace hone::cost {

using trial::BoundScores;

// By the static analysis: shares of the time that transfers and arithmetic would need one after the
// other; they sum to 1.
[[nodiscard]] BoundScores static_bounds(const Query& query);
// `counted` (trial/bounds.h), if that is known.
[[nodiscard]] BoundScores bound_scores(const Query& query,
                                       const std::optional<BoundScores>& counted);
// "counters", "static" or "mixed": where the scores of `all` schedules are from.
[[nodiscard]] std::string_view bounds_source(int64_t counted, int64_t all);

}  // namespace hone::cost
