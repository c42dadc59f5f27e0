// cost/row_model.h - cost models that read candidates as rows of numbers and are asked for many at
// once, because each call of one costs much: rows are made by several threads, then one call
// predicts all of them.
#pragma once

#include "hone/cost/candidate_features.h"
#include "hone/cost/cost_model.h"

namespace hone::cost {

class RowModel : public CostModel {
 public:
  [[nodiscard]] virtual CandidateFeatures row(const Query& query) const = 0;
  // Returns the seconds of candidates of one task.
  [[nodiscard]] virtual Result<std::vector<double>> predict_rows(
      uint64_t task, int threads, std::span<const CandidateFeatures> rows) const = 0;
};

// Returns the model as one that reads rows, or null if it does not.
[[nodiscard]] const RowModel* as_row_model(const CostModel& model);

}  // namespace hone::cost
