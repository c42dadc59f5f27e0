#include "hone/search/agent/clusters.h"

#include <algorithm>
#include <cmath>

namespace hone::search {
namespace {

constexpr int kRounds = 20;  // of Lloyd's algorithm
constexpr int kStep = 8, kMostClusters = 64;

double distance(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

// k-means++ (Arthur and Vassilvitskii, SODA 2007).
std::vector<std::vector<float>> first_centres(std::span<const std::vector<float>> rows, int k,
                                              Rng& rng) {
  std::vector<std::vector<float>> centres = {
      rows[static_cast<size_t>(rng.below(std::ssize(rows)))]};
  std::vector<double> away(rows.size(), INFINITY);
  while (std::ssize(centres) < k) {
    double sum = 0;
    for (size_t i = 0; i < rows.size(); ++i)
      sum += away[i] = std::min(away[i], distance(rows[i], centres.back()));
    if (sum <= 0) break;
    double left = rng.uniform() * sum;
    size_t chosen = 0;
    for (size_t i = 0; i < rows.size() && left >= 0; ++i) {
      if (away[i] > 0) chosen = i;
      left -= away[i];
    }
    centres.push_back(rows[chosen]);
  }
  return centres;
}

}  // namespace

size_t nearest(std::span<const std::vector<float>> rows, std::span<const float> point) {
  size_t best = 0;
  double least = INFINITY;
  for (size_t i = 0; i < rows.size(); ++i) {
    const double away = distance(rows[i], point);
    if (away < least) least = away, best = i;
  }
  return best;
}

Clusters cluster(std::span<const std::vector<float>> rows, int k, Rng& rng) {
  Clusters clusters;
  if (rows.empty()) return clusters;
  clusters.centres = first_centres(rows, k, rng);
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::vector<double>> sums(clusters.centres.size(),
                                          std::vector<double>(rows[0].size()));
    std::vector<int> counts(clusters.centres.size());
    double loss = 0;
    for (const std::vector<float>& row : rows) {
      const size_t own = nearest(clusters.centres, row);
      loss += distance(row, clusters.centres[own]);
      ++counts[own];
      for (size_t i = 0; i < row.size(); ++i) sums[own][i] += row[i];
    }
    const bool settled = round > 0 && loss >= clusters.loss;
    clusters.loss = loss;
    if (settled) break;
    for (size_t c = 0; c < clusters.centres.size(); ++c) {
      for (size_t i = 0; i < rows[0].size() && counts[c] > 0; ++i)
        clusters.centres[c][i] = static_cast<float>(sums[c][i] / counts[c]);
    }
  }
  return clusters;
}

Clusters adaptive_clusters(std::span<const std::vector<float>> rows, double knee, Rng& rng) {
  Clusters best = cluster(rows, kStep, rng);
  for (int k = 2 * kStep; k <= kMostClusters; k += kStep) {
    Clusters more = cluster(rows, k, rng);
    if (more.loss >= best.loss / knee) break;
    best = std::move(more);
  }
  return best;
}

}  // namespace hone::search
