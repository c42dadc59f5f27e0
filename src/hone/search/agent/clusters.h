// search/agent/clusters.h - adaptive sampling (Chameleon, ICLR 2020, section 4.2): of many points
// that a search visited, so few are measured that each stands for a cluster of others.
#pragma once

#include <span>
#include <vector>

#include "hone/base/rng.h"

namespace hone::search {

struct Clusters {
  std::vector<std::vector<float>> centres;
  double loss = 0;  // sum of the squared distances to the nearest centre
};

// Lloyd's k-means from centres that k-means++ draws. There are no more centres than distinct rows.
[[nodiscard]] Clusters cluster(std::span<const std::vector<float>> rows, int k, Rng& rng);

// Makes clusters, 8 first and 8 more each time up to 64, while the loss falls by the factor `knee`.
[[nodiscard]] Clusters adaptive_clusters(std::span<const std::vector<float>> rows, double knee,
                                         Rng& rng);

// Returns the index of the row that is nearest to a point.
[[nodiscard]] size_t nearest(std::span<const std::vector<float>> rows,
                             std::span<const float> point);

}  // namespace hone::search
