// cost/gpu_features.h - a candidate on a GPU as one row of numbers of fixed length, for trees: what
// analysis/gpu_measure.h finds of its launches, how the warps of the heaviest statement access
// memory, and what was decided. Like those of "combined" most numbers are ratios, so that they mean
// the same for every task.
#pragma once

#include "hone/cost/candidate_features.h"

namespace hone::cost {

[[nodiscard]] CandidateFeatures gpu_features(const Query& query);
[[nodiscard]] const std::vector<std::string>& gpu_feature_names();

// This version changes if a number of the row changes its meaning. A model that was trained with
// another version is refused.
inline constexpr int kGpuFeatureVersion = 2;

}  // namespace hone::cost
