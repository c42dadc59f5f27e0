// search/prediction.h - a cost model asked about points: what every strategy ranks by.
#pragma once

#include "hone/search/searcher.h"

namespace hone::search {

// Logarithms of predicted seconds; infinity where a point is illegal. A model that fails ranks
// nothing: legal points are then equal.
[[nodiscard]] std::vector<double> predict_log_seconds(const SearchTask& task,
                                                      std::span<const space::Point> points);

// Of any schedule of the task, whether it is a point of a space or not (`task.space` is not asked);
// an error if its steps do not apply or the model fails.
[[nodiscard]] Result<double> predict_seconds(const SearchTask& task, const compute::Dag& dag,
                                             const schedule::Steps& steps);

struct Predicted {
  space::Point point;
  double seconds;          // predicted
  double default_seconds;  // of the space's default point
};

struct BestPredictedOptions {
  int samples = 2000;
  size_t climbers = 6;  // of the best samples, each goes to its best neighbour while that is better
  int max_climb = 12;   // steps
  double margin = 0.03;  // how much better than the default point one must look to be taken
};

// The best point that sampling and climbing find without measuring.
[[nodiscard]] Predicted best_predicted(const SearchTask& task,
                                       const BestPredictedOptions& options = {});

}  // namespace hone::search
