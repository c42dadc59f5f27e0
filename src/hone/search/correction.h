// search/correction.h - the errors of a cost model on one task, learned while the task is measured:
// a Gaussian process on log(measured / predicted) over the point's decisions, one per sketch
// (Rasmussen and Williams, Gaussian Processes for Machine Learning, algorithm 2.1).
#pragma once

#include <span>
#include <vector>

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
  [[nodiscard]] size_t size() const { return samples_.size(); }

  static constexpr size_t kMinimum = 8;
  static constexpr size_t kMaximum = 256;  // the newest are used: the cost is cubic

 private:
  struct Sample {
    int sketch;
    std::vector<float> decisions;
    double log_factor;
  };
  [[nodiscard]] double covariance(int sketch_a, std::span<const float> a, int sketch_b,
                                  std::span<const float> b, double length) const;
  [[nodiscard]] double fit_length(double length);  // returns the log marginal likelihood

  std::vector<Sample> samples_;
  size_t first_ = 0, count_ = 0;  // the samples that the fit uses
  double mean_ = 0;
  double length_ = 1;
  std::vector<double> cholesky_;  // lower triangle, row-major, count_ x count_
  std::vector<double> weights_;   // inverse covariance times the centred samples
};

}  // namespace hone::search
