#include "hone/learn/metrics.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "hone/base/assert.h"

namespace hone::learn {

double pair_accuracy(std::span<const double> measured, std::span<const double> predicted,
                     double least_ratio) {
  HONE_ASSERT(measured.size() == predicted.size(), "one prediction per measurement");
  int64_t pairs = 0, halves = 0;
  for (size_t i = 0; i < measured.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const double slower = std::max(measured[i], measured[j]);
      if (slower <= least_ratio * std::min(measured[i], measured[j])) continue;
      ++pairs;
      if (predicted[i] == predicted[j])
        halves += 1;
      else if ((predicted[i] < predicted[j]) == (measured[i] < measured[j]))
        halves += 2;
    }
  }
  return pairs == 0 ? 1 : 0.5 * static_cast<double>(halves) / static_cast<double>(pairs);
}

namespace {

// The k candidates that are predicted to be fastest, or all.
std::vector<size_t> best_predicted(std::span<const double> measured,
                                   std::span<const double> predicted, int k) {
  HONE_ASSERT(measured.size() == predicted.size() && !measured.empty() && k > 0,
              "one prediction per measurement, and at least one");
  std::vector<size_t> order(measured.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return predicted[a] != predicted[b] ? predicted[a] < predicted[b] : measured[a] > measured[b];
  });
  order.resize(std::min(order.size(), static_cast<size_t>(k)));
  return order;
}

}  // namespace

double sum_score(std::span<const double> measured, std::span<const double> predicted, int k) {
  HONE_ASSERT(std::ssize(measured) >= k, "a sum of k candidates needs as many");
  double chosen = 0;
  for (const size_t i : best_predicted(measured, predicted, k)) chosen += measured[i];
  std::vector<double> sorted(measured.begin(), measured.end());
  std::sort(sorted.begin(), sorted.end());
  return std::accumulate(sorted.begin(), sorted.begin() + k, 0.0) / chosen;
}

double top_score(std::span<const double> measured, std::span<const double> predicted, int k) {
  const std::vector<size_t> order = best_predicted(measured, predicted, k);
  double reached = std::numeric_limits<double>::infinity();
  for (const size_t i : order) reached = std::min(reached, measured[i]);
  return *std::min_element(measured.begin(), measured.end()) / reached;
}

double peak_score(std::span<const double> measured, std::span<const double> predicted, int k) {
  double sum = 0;
  for (int i = 1; i <= k; ++i) sum += top_score(measured, predicted, i);
  return sum / k;
}

std::vector<double> speeds(std::span<const double> seconds) {
  const double best = *std::min_element(seconds.begin(), seconds.end());
  std::vector<double> shares;
  for (const double s : seconds) shares.push_back(s > 0 ? best / s : 1);
  return shares;
}

double squared_error(std::span<const double> actual, std::span<const double> predicted) {
  HONE_ASSERT(actual.size() == predicted.size() && !actual.empty(), "one prediction per value");
  double sum = 0;
  for (size_t i = 0; i < actual.size(); ++i)
    sum += (actual[i] - predicted[i]) * (actual[i] - predicted[i]);
  return sum / static_cast<double>(actual.size());
}

double r_squared(std::span<const double> actual, std::span<const double> predicted) {
  HONE_ASSERT(actual.size() == predicted.size(), "one prediction per value");
  Determination all;
  for (size_t i = 0; i < actual.size(); ++i) all.add(actual[i], predicted[i]);
  return all.r_squared();
}

// Running mean and variation after Welford (Technometrics 1962), joined after Chan et al. (1979).
void Determination::add(double actual, double predicted) {
  ++count_;
  const double before = actual - mean_;
  mean_ += before / count_;
  variation_ += before * (actual - mean_);
  error_ += (actual - predicted) * (actual - predicted);
}

void Determination::add(const Determination& others) {
  if (others.count_ == 0) return;
  const double count = count_ + others.count_, apart = others.mean_ - mean_;
  mean_ += apart * others.count_ / count;
  variation_ += others.variation_ + apart * apart * count_ * others.count_ / count;
  error_ += others.error_;
  count_ = count;
}

double Determination::r_squared() const { return variation_ > 0 ? 1 - error_ / variation_ : 0; }

}  // namespace hone::learn
