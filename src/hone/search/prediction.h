// search/prediction.h - predictions of a cost model for points, by which every strategy ranks them.
#pragma once

#include <optional>

#include "hone/search/searcher.h"
#include "hone/trial/bounds.h"

namespace hone::search {

// Returns the logarithms of predicted seconds; infinity for illegal points, and for sketches that
// need several threads if the task has one. If the model fails, all other points are equal.
[[nodiscard]] std::vector<double> predict_log_seconds(const SearchTask& task,
                                                      std::span<const space::Point> points);

// Returns the shares of memory and arithmetic in the time of points (cost::expected_bounds), which
// sum up to 1; none for an illegal point.
[[nodiscard]] std::vector<std::optional<trial::BoundScores>> predict_bounds(
    const SearchTask& task, std::span<const space::Point> points);

// Predicts the seconds of any schedule of the task, whether it is a point of a space or not
// (`task.space` is not used). Returns an error if its steps do not apply or the model fails.
[[nodiscard]] Result<double> predict_seconds(const SearchTask& task, const compute::Dag& dag,
                                             const schedule::Steps& steps);

struct Predicted {
  space::Point point;
  double seconds;          // predicted seconds
  double default_seconds;  // predicted seconds of the default point
};

struct BestPredictedOptions {
  int samples = 2000;
  size_t climbers = 6;   // number of the best samples that are climbed from
  int max_climb = 12;    // most steps of a climb
  double margin = 0.03;  // share by which a point must seem faster than the default one
};

// Returns the best predicted of `candidates` if it seems faster than `start` by the margin, else
// `start`. Decisions of which models have seen nothing stay as the rule of thumb has them.
// Predicted::default_seconds are those of `start`.
[[nodiscard]] Predicted best_of(const SearchTask& task, std::span<const space::Point> candidates,
                                const space::Point& start, double margin);
// Returns the best point that sampling and climbing find without measuring.
[[nodiscard]] Predicted best_predicted(const SearchTask& task,
                                       const BestPredictedOptions& options = {});
// Returns that point and behind it at most `others` different ones for a better judge to choose
// among: where the other climbs ended, the default point, and the best neighbours of the first.
[[nodiscard]] std::vector<Predicted> best_few_predicted(const SearchTask& task, size_t others,
                                                        const BestPredictedOptions& options = {});

}  // namespace hone::search
