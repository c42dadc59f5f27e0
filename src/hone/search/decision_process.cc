#include "hone/search/decision_process.h"

#include <cmath>
#include <optional>

#include "hone/base/assert.h"

namespace hone::search {
namespace {

constexpr double kLengths[] = {0.5, 1.0, 2.0};  // in units of the mean distance of a random pair

// Of random decisions the mean of (x - 1/2)^2 is 1/12, and that of a pair's squared difference 1/6.
GaussianProcess::Kernel kernel(const DecisionVariances& variances, double length) {
  return [=](std::span<const float> a, std::span<const float> b) {
    if (a[0] != b[0] || a.size() != b.size() || a.size() == 1) return variances.shared;
    const auto size = static_cast<double>(a.size() - 1);
    double dot = 0;
    for (size_t i = 1; i < a.size(); ++i) dot += (a[i] - 0.5) * (b[i] - 0.5);
    return variances.shared + variances.linear * dot * 12 / size +
           variances.local * std::exp(-decision_distance(a, b) * 6 / (2 * length * length * size));
  };
}

}  // namespace

std::vector<float> decision_row(int sketch, std::span<const float> decisions) {
  std::vector<float> row = {static_cast<float>(sketch)};
  row.insert(row.end(), decisions.begin(), decisions.end());
  return row;
}

double decision_distance(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 1; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

GaussianProcess fit_decisions(std::span<const std::vector<float>> rows,
                              std::span<const double> values, const DecisionVariances& variances) {
  HONE_ASSERT(rows.size() == values.size(), "one value for each row");
  std::optional<GaussianProcess> best;
  for (const double length : kLengths) {
    GaussianProcess process(kernel(variances, length), variances.noise);
    for (size_t i = 0; i < rows.size(); ++i) process.add(rows[i], values[i]);
    if (!best || process.log_likelihood() > best->log_likelihood()) best = std::move(process);
  }
  return std::move(*best);
}

}  // namespace hone::search
