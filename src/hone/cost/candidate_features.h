// cost/candidate_features.h - a candidate as one row of numbers of fixed length, for trees. It has
// the features of the heaviest statement and sums over all statements; for the combined model it
// has the register tile of that statement, the parts of the analytic measure relative to the work,
// and the decisions of the schedule (schedule_features.h). Those of candidates on GPUs are others
// (gpu_features.h).
#pragma once

#include "hone/analysis/cpu_measure.h"
#include "hone/cost/cost_model.h"
#include "hone/trial/bounds.h"

namespace hone::cost {

enum class FeatureSet : uint8_t {
  kStatements,  // for "gbdt"
  kMeasure,     // for nets: the first numbers of kCombined
  kCombined,
  kGpu,  // the only ones for GPUs
};
// The sets that trees can use.
inline constexpr FeatureSet kTreeFeatures[] = {FeatureSet::kStatements, FeatureSet::kCombined,
                                               FeatureSet::kGpu};
// Returns the devices whose candidates have the features.
[[nodiscard]] constexpr target::Kind device_kind(FeatureSet set) {
  return set == FeatureSet::kGpu ? target::Kind::kGpu : target::Kind::kCpu;
}

struct CandidateFeatures {
  std::vector<float> row;
  double base_seconds = 0;    // a first estimate, which trees correct by a factor
  trial::BoundScores bounds;  // static_bounds() (cost/bound_scores.h)
};
// The query's target must be of the set's kind.
[[nodiscard]] CandidateFeatures candidate_features(const Query& query, FeatureSet set);
// Returns the name of each number: "main.ops.fma", "loop0.extent", "measure.root.tiles", ...
[[nodiscard]] const std::vector<std::string>& candidate_feature_names(FeatureSet set);

// Writes what nets read, for a candidate whose nests and measure are known: the numbers of
// kMeasure, and those that kCombined has beyond them. An empty row is not written.
void write_net_features(std::span<const analysis::Nest> nests, const analysis::CpuMeasure& measure,
                        const Query& query, std::span<float> parts_row,
                        std::span<float> decisions_row);
[[nodiscard]] const std::vector<std::string>& decision_names();

// This version changes if a number of the row changes its meaning. A model that was trained with
// another version is refused.
inline constexpr int kCandidateFeatureVersion = 3;
// This is the version of kMeasure, which nets read. Nets that read decisions check the version
// above, too.
inline constexpr int kMeasureFeatureVersion = 2;

}  // namespace hone::cost
