// cost/bound_scores.h - the shares of a candidate's time that memory and arithmetic take (Fasor's
// memory-bound and core-bound scores). They are from hardware counters if these were read when it
// was measured, else from the static analysis. Files say which.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "hone/analysis/cpu_measure.h"
#include "hone/analysis/gpu_measure.h"
#include "hone/cost/cost_model.h"
#include "hone/trial/bounds.h"

namespace hone::cost {

using trial::BoundScores;

// Returns the scores of the static analysis: the shares of transfers and arithmetic in the time
// that they would need one after the other. Their sum is 1.
[[nodiscard]] BoundScores static_bounds(const Query& query);
// Do the same where the candidate was measured already.
[[nodiscard]] BoundScores bounds_of(const analysis::CpuMeasure& measure, int threads);
[[nodiscard]] BoundScores bounds_of(const analysis::GpuMeasure& measure, const target::Gpu& gpu);
// A cost model that also predicts the scores, as nets of the family fasor do.
class BoundsPredictor {
 public:
  virtual ~BoundsPredictor() = default;
  // Returns the scores of each query, between 0 and 1; nothing if this model has none.
  [[nodiscard]] virtual Result<std::optional<std::vector<BoundScores>>> predict_bounds(
      std::span<const Query> queries) const = 0;
};
// Returns the scores that the model predicts; nothing if it predicts none.
[[nodiscard]] Result<std::optional<std::vector<BoundScores>>> predicted_bounds(
    const CostModel& model, std::span<const Query> queries);
// Returns the scores of each query: those that the model predicts, else those of the static
// analysis.
[[nodiscard]] std::vector<BoundScores> expected_bounds(const CostModel& model,
                                                       std::span<const Query> queries);
// Returns `counted` (trial/bounds.h) if it is known, else the scores of the static analysis.
[[nodiscard]] BoundScores bound_scores(const Query& query,
                                       const std::optional<BoundScores>& counted);
// Returns where the scores of `all` schedules come from: "counters", "static" or "mixed".
[[nodiscard]] std::string_view bounds_source(int64_t counted, int64_t all);

}  // namespace hone::cost
