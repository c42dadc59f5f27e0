// search/gaussian_process.h - a Gaussian process over rows of numbers with mean 0 (Rasmussen and
// Williams, Gaussian Processes for Machine Learning, algorithm 2.1). Samples are added one at a
// time: each adds a row to the Cholesky factor of the covariance, which costs the square of their
// number.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace hone::search {

class GaussianProcess {
 public:
  // The covariance of the functions' values at two rows.
  using Kernel = std::function<double(std::span<const float>, std::span<const float>)>;
  GaussianProcess(Kernel kernel, double noise_variance)
      : kernel_(std::move(kernel)), noise_(noise_variance) {}

  void add(std::span<const float> row, double value);
  [[nodiscard]] size_t size() const { return rows_.size(); }

  struct Posterior {
    double mean = 0, variance = 0;  // without the noise of measuring
  };
  [[nodiscard]] Posterior at(std::span<const float> row) const;
  // A row whose posterior follows the samples that are added: each costs only their number.
  struct Followed {
    std::vector<float> row;
    std::vector<double> whitened = {};  // L^-1 k(row, samples)
    Posterior posterior = {};
  };
  // Brings the posterior of a row up to date.
  void follow(Followed& followed) const;

  // The joint posterior of several rows: means, and a triangular root of the covariance.
  struct Joint {
    std::vector<double> mean;
    std::vector<std::vector<double>> root;  // row i has i + 1 numbers
    // Returns a draw, made of one standard normal number for each row.
    [[nodiscard]] std::vector<double> draw(std::span<const double> normals) const;
  };
  [[nodiscard]] Joint joint(std::span<const std::vector<float>> rows) const;
  // The logarithm of the probability of the values, up to a constant.
  [[nodiscard]] double log_likelihood() const;

 private:
  Kernel kernel_;
  double noise_;
  std::vector<std::vector<float>> rows_;
  std::vector<std::vector<double>> cholesky_;  // row i has i + 1 numbers
  std::vector<double> solved_;                 // L^-1 values
};

}  // namespace hone::search
