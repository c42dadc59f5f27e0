#include "hone/trial/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "hone/base/assert.h"

namespace hone::trial {
namespace {

std::vector<double> sorted(std::span<const double> samples) {
  HONE_ASSERT(!samples.empty(), "statistics of no samples");
  std::vector<double> result(samples.begin(), samples.end());
  std::sort(result.begin(), result.end());
  return result;
}

double median_of_sorted(const std::vector<double>& s) {
  const size_t n = s.size();
  return n % 2 == 1 ? s[n / 2] : 0.5 * (s[n / 2 - 1] + s[n / 2]);
}

}  // namespace

double median(std::span<const double> samples) { return median_of_sorted(sorted(samples)); }

double robust_centre(std::span<const double> samples) {
  const std::vector<double> s = sorted(samples);
  if (s.size() < 4) return median_of_sorted(s);
  const auto cut = static_cast<std::ptrdiff_t>(s.size() / 4);
  return std::accumulate(s.begin() + cut, s.end() - cut, 0.0) /
         static_cast<double>(s.size() - 2 * static_cast<size_t>(cut));
}

Interval median_interval(std::span<const double> samples, double confidence) {
  const std::vector<double> s = sorted(samples);
  const auto n = static_cast<double>(s.size());
  // P(at most k of n samples lie below the median) <= (1 - confidence) / 2 for the greatest k: then
  // the (k+1)-th smallest and greatest samples enclose it.
  double probability = std::exp2(-n), cumulative = probability;
  size_t k = 0;
  while (cumulative + probability * (n - static_cast<double>(k)) / (static_cast<double>(k) + 1) <=
         (1 - confidence) / 2) {
    probability *= (n - static_cast<double>(k)) / (static_cast<double>(k) + 1);
    cumulative += probability;
    ++k;
  }
  return {s[k], s[s.size() - 1 - k]};
}

bool SlowerTest::add(double sample) {
  constexpr double kAlternative = 0.95, kNull = 0.5, kError = 0.05;
  log_ratio_ +=
      sample > bound_ ? std::log(kAlternative / kNull) : std::log((1 - kAlternative) / (1 - kNull));
  slower_ = slower_ || log_ratio_ >= std::log((1 - kError) / kError);
  return slower_;
}

void PairTest::add(double first, double second) {
  if (decided() || first == second) return;
  ++(first < second ? wins_ : losses_);
  constexpr double kChances[] = {0.6, 0.7, 0.8, 0.9, 0.95};
  const auto likelihood = [&](int wins, int losses) {
    double sum = 0;
    for (const double p : kChances) sum += std::pow(2 * p, wins) * std::pow(2 * (1 - p), losses);
    return sum / std::size(kChances);
  };
  first_ = likelihood(wins_, losses_) >= bound_;
  second_ = !first_ && likelihood(losses_, wins_) >= bound_;
}

}  // namespace hone::trial
