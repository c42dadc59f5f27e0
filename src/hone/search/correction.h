// search/correction.h - the errors of a cost model on one task, learned while the task is measured:
// a Gaussian process on log(measured / predicted) over the point's decisions (decision_process.h).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "hone/search/gaussian_process.h"

namespace hone::search {

struct Estimate {
  double log_factor = 0;  // to be added to the logarithm of the prediction
  double deviation = 1;   // its standard deviation
};

class Correction {
 public:
  // Adds a sample. `decisions` is Space::encode(point), and `log_factor` is log(measured /
  // predicted).
  void add(int sketch, std::span<const float> decisions, double log_factor);
  // Fits what was added; until there are kMinimum samples every estimate is neutral.
  void fit();
  [[nodiscard]] Estimate estimate(int sketch, std::span<const float> decisions) const;
  [[nodiscard]] size_t size() const { return rows_.size(); }

  static constexpr size_t kMinimum = 8;
  static constexpr size_t kMaximum = 256;  // the newest are used: the cost is cubic

 private:
  std::vector<std::vector<float>> rows_;
  std::vector<double> log_factors_;
  double mean_ = 0;
  std::optional<GaussianProcess> process_;  // knows the factors less their mean; none before a fit
};

}  // namespace hone::search
