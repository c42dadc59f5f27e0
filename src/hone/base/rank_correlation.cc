#include "hone/base/rank_correlation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hone {

std::vector<float> unit_ranks(std::span<const float> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double rank = (static_cast<double>(begin) + static_cast<double>(end) - 1) / 2;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = rank;
  }
  const double mean = (static_cast<double>(values.size()) - 1) / 2;
  double square = 0;
  for (double& rank : ranks) rank -= mean, square += rank * rank;
  std::vector<float> unit;
  const double scale = square > 0 ? 1 / std::sqrt(square) : 0;
  for (const double rank : ranks) unit.push_back(static_cast<float>(rank * scale));
  return unit;
}

double inner_product(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

double spearman(std::span<const float> a, std::span<const float> b) {
  return inner_product(unit_ranks(a), unit_ranks(b));
}

}  // namespace hone
