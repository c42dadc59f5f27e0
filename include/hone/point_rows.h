// point_rows.h - points of the space of a task's schedules, and the features of their candidates,
// as rows of numbers: what search strategies and cost models outside of Hone work on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hone/export.h"

namespace hone {

// Points of one space. A row has the index of the sketch, then the index of the chosen option of
// each of the sketch's decisions, and -1 behind them up to the width, which is that of the sketch
// with the most decisions.
struct PointRows {
  size_t width = 1;
  std::vector<int32_t> values;  // row by row
  [[nodiscard]] size_t size() const { return values.size() / width; }
  [[nodiscard]] std::span<const int32_t> row(size_t i) const {
    return std::span(values).subspan(i * width, width);
  }
};

// Features of candidates, a row each. An illegal point has a row of NaN and an estimate of
// infinity.
struct FeatureRows {
  size_t width = 0;
  std::vector<float> values;      // row by row
  std::vector<double> estimates;  // seconds by the analytic model, one for each row
  [[nodiscard]] size_t size() const { return estimates.size(); }
};

// Returns the names of the sets of features: "statements", "measure" and "combined" are those of
// CPUs, "gpu" that of GPUs.
[[nodiscard]] HONE_API std::vector<std::string> feature_sets();
// Returns the name of each number of a set's rows; none for a set that does not exist.
[[nodiscard]] HONE_API std::vector<std::string> feature_names(const std::string& set);

}  // namespace hone
