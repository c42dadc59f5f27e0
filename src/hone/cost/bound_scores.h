// cost/bound_scores.h - how much of a candidate's time memory and arithmetic take (Fasor's
// memory-bound and core-bound scores), from the static analysis: `source` in files says so, since a
// machine with hardware counters could measure them.
#pragma once

#include "hone/cost/cost_model.h"

namespace hone::cost {

inline constexpr std::string_view kBoundSource = "static";

// Shares of the time that transfers and arithmetic would need one after the other; they sum to 1.
struct BoundScores {
  double memory = 0, core = 0;
};
[[nodiscard]] BoundScores bound_scores(const Query& query);

}  // namespace hone::cost
