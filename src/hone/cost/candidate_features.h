// cost/candidate_features.h - a candidate as one row of numbers of fixed length for the trees: the
// features of its heaviest statement and sums over all of them; or, for the combined model, the
// register tile of that statement, the parts of the analytic measure, relative to the work, and
// what was decided (schedule_features.h).
#pragma once

#include "hone/analysis/cpu_measure.h"
#include "hone/cost/cost_model.h"

namespace hone::cost {

enum class FeatureSet : uint8_t {
  kStatements,  // of gbdt
  kMeasure,     // of nets: the first ones of the next
  kCombined,
};
// Those that trees look at.
inline constexpr FeatureSet kTreeFeatures[] = {FeatureSet::kStatements, FeatureSet::kCombined};

struct CandidateFeatures {
  std::vector<float> row;
  double base_seconds = 0;  // a first guess, which trees correct by a factor
};
[[nodiscard]] CandidateFeatures candidate_features(const Query& query, FeatureSet set);
// What each number is: "main.ops.fma", "loop0.extent", "measure.root.tiles", ...
[[nodiscard]] const std::vector<std::string>& candidate_feature_names(FeatureSet set);

// What nets read, where the candidate's nests and measure are known: the numbers of kMeasure, and
// what kCombined has beyond them. An empty row is left out.
void write_net_features(std::span<const analysis::Nest> nests, const analysis::CpuMeasure& measure,
                        const Query& query, std::span<float> parts_row,
                        std::span<float> decisions_row);
[[nodiscard]] const std::vector<std::string>& decision_names();

// Changes when a number of the row changes its meaning: a model that was trained on others is
// refused.
inline constexpr int kCandidateFeatureVersion = 3;
// The same of kMeasure: nets read it. Those that read decisions look at the version above, too.
inline constexpr int kMeasureFeatureVersion = 2;

}  // namespace hone::cost
