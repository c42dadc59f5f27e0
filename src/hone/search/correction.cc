#include "hone/search/correction.h"

#include <algorithm>
#include <cmath>

#include "hone/base/assert.h"

namespace hone::search {
namespace {

// Variances of log time: what sketches share, what depends on the decisions, and what measuring
// adds.
constexpr double kSharedVariance = 0.05;
constexpr double kLinearVariance = 0.10;
constexpr double kLocalVariance = 0.15;
constexpr double kNoiseVariance = 0.002;
constexpr double kLengths[] = {0.5, 1.0, 2.0};  // in units of the mean distance of a random pair

}  // namespace

void Correction::add(int sketch, std::span<const float> decisions, double log_factor) {
  samples_.push_back(
      {sketch, {decisions.begin(), decisions.end()}, std::clamp(log_factor, -3.0, 3.0)});
}

double Correction::covariance(int sketch_a, std::span<const float> a, int sketch_b,
                              std::span<const float> b, double length) const {
  if (sketch_a != sketch_b || a.size() != b.size() || a.empty()) return kSharedVariance;
  double distance = 0, dot = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    distance += (a[i] - b[i]) * (a[i] - b[i]);
    dot += (a[i] - 0.5) * (b[i] - 0.5);
  }
  const double size = static_cast<double>(a.size());
  return kSharedVariance + kLinearVariance * dot * 12 / size +
         kLocalVariance * std::exp(-distance * 6 / (2 * length * length * size));
}

double Correction::fit_length(double length) {
  const size_t n = count_;
  length_ = length;
  cholesky_.assign(n * n, 0);
  weights_.assign(n, 0);
  double likelihood = 0;
  for (size_t i = 0; i < n; ++i) {
    const Sample& a = samples_[first_ + i];
    for (size_t j = 0; j <= i; ++j) {
      const Sample& b = samples_[first_ + j];
      double sum = covariance(a.sketch, a.decisions, b.sketch, b.decisions, length) +
                   (i == j ? kNoiseVariance : 0);
      for (size_t k = 0; k < j; ++k) sum -= cholesky_[i * n + k] * cholesky_[j * n + k];
      cholesky_[i * n + j] = i == j ? std::sqrt(std::max(sum, 1e-9)) : sum / cholesky_[j * n + j];
    }
    double rest = a.log_factor - mean_;
    for (size_t k = 0; k < i; ++k) rest -= cholesky_[i * n + k] * weights_[k];
    weights_[i] = rest / cholesky_[i * n + i];
    likelihood -= 0.5 * weights_[i] * weights_[i] + std::log(cholesky_[i * n + i]);
  }
  for (size_t i = n; i-- > 0;) {
    double rest = weights_[i];
    for (size_t k = i + 1; k < n; ++k) rest -= cholesky_[k * n + i] * weights_[k];
    weights_[i] = rest / cholesky_[i * n + i];
  }
  return likelihood;
}

void Correction::fit() {
  if (samples_.size() < kMinimum) return;
  count_ = std::min(samples_.size(), kMaximum);
  first_ = samples_.size() - count_;
  std::vector<double> factors;
  for (size_t i = first_; i < samples_.size(); ++i) factors.push_back(samples_[i].log_factor);
  std::nth_element(factors.begin(),
                   factors.begin() + static_cast<std::ptrdiff_t>(factors.size() / 2),
                   factors.end());
  mean_ = factors[factors.size() / 2];
  double best = -INFINITY, best_length = kLengths[0];
  for (const double length : kLengths) {
    const double likelihood = fit_length(length);
    if (likelihood > best) best = likelihood, best_length = length;
  }
  if (best_length != length_) (void)fit_length(best_length);
}

Estimate Correction::estimate(int sketch, std::span<const float> decisions) const {
  const size_t n = count_;
  if (n == 0) return {};
  std::vector<double> k(n);
  Estimate result{mean_, 0};
  for (size_t i = 0; i < n; ++i) {
    const Sample& sample = samples_[first_ + i];
    k[i] = covariance(sketch, decisions, sample.sketch, sample.decisions, length_);
    result.log_factor += k[i] * weights_[i];
  }
  double variance = covariance(sketch, decisions, sketch, decisions, length_);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < i; ++j) k[i] -= cholesky_[i * n + j] * k[j];
    k[i] /= cholesky_[i * n + i];
    variance -= k[i] * k[i];
  }
  result.deviation = std::sqrt(std::max(variance, 0.0));
  return result;
}

}  // namespace hone::search
