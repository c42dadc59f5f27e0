#include "hone/search/correction.h"

#include <algorithm>
#include <cmath>

#include "hone/search/decision_process.h"

namespace hone::search {
namespace {

// Variances of log time.
constexpr DecisionVariances kVariances = {
    .shared = 0.05, .linear = 0.10, .local = 0.15, .noise = 0.002};

}  // namespace

void Correction::add(int sketch, std::span<const float> decisions, double log_factor) {
  rows_.push_back(decision_row(sketch, decisions));
  log_factors_.push_back(std::clamp(log_factor, -3.0, 3.0));
}

void Correction::fit() {
  if (size() < kMinimum) return;
  const size_t first = size() - std::min(size(), kMaximum);
  std::vector<double> values(log_factors_.begin() + static_cast<std::ptrdiff_t>(first),
                             log_factors_.end());
  std::vector<double> sorted = values;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  mean_ = *middle;
  for (double& value : values) value -= mean_;
  process_ = fit_decisions(std::span(rows_).subspan(first), values, kVariances);
}

Estimate Correction::estimate(int sketch, std::span<const float> decisions) const {
  if (!process_) return {};
  const GaussianProcess::Posterior found = process_->at(decision_row(sketch, decisions));
  return {mean_ + found.mean, std::sqrt(found.variance)};
}

}  // namespace hone::search
