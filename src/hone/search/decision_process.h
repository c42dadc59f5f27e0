// search/decision_process.h - a Gaussian process over the decisions of schedules: what all sketches
// have in common, what single decisions add, and what only schedules near each other share.
#pragma once

#include "hone/search/gaussian_process.h"

namespace hone::search {

// The variances of a process's parts, and of the noise of measuring.
struct DecisionVariances {
  double shared, linear, local, noise;
  [[nodiscard]] DecisionVariances times(double factor) const {
    return {shared * factor, linear * factor, local * factor, noise};
  }
};

// A row of the process: the sketch, and the decisions as Space::encode() returns them.
[[nodiscard]] std::vector<float> decision_row(int sketch, std::span<const float> decisions);
// Returns the squared distance between the decisions of two rows of one sketch.
[[nodiscard]] double decision_distance(std::span<const float> a, std::span<const float> b);

// Returns a process that knows values with mean 0. Its length scale is the one of a few that
// explains them best.
[[nodiscard]] GaussianProcess fit_decisions(std::span<const std::vector<float>> rows,
                                            std::span<const double> values,
                                            const DecisionVariances& variances);

}  // namespace hone::search
