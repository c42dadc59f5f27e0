#include "hone/search/acquisition.h"

#include <algorithm>
#include <numbers>

#include "hone/search/decision_process.h"

namespace hone::search {
namespace {

double normal_density(double z) { return std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi); }
double normal_share(double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; }

}  // namespace

double expected_improvement(double best, double mean, double deviation) {
  const double z = (best - mean) / deviation;
  return deviation * (z * normal_share(z) + normal_density(z));
}

double confidence_bound(double best, double mean, double deviation, double kappa) {
  const double bound = best - (mean - kappa * deviation);
  return std::log1p(std::exp(std::min(bound * 8, 50.0)));
}

double chance_outside_ball(double reach, double gap, double deviation) {
  return normal_share((reach - gap) / deviation);
}

void believe(const PoolPoint& chosen, GaussianProcess& process, double& best,
             std::span<PoolPoint> pool) {
  process.add(chosen.followed.row, chosen.followed.posterior.mean);
  best = std::min(best, chosen.mean());  // nothing more is to be gained by what is believed
  for (PoolPoint& other : pool) process.follow(other.followed);
}

void penalise(const PoolPoint& chosen, double best, std::span<PoolPoint> pool) {
  const auto comparable = [&](const PoolPoint& other) {
    const std::vector<float>&row = other.followed.row, &own = chosen.followed.row;
    return row[0] == own[0] && row.size() == own.size();
  };
  const auto away = [&](const PoolPoint& other) {
    return std::sqrt(decision_distance(other.followed.row, chosen.followed.row));
  };
  double slope = 1e-3;
  for (const PoolPoint& other : pool) {
    if (comparable(other) && away(other) > 0)
      slope = std::max(slope, std::abs(other.mean() - chosen.mean()) / away(other));
  }
  for (PoolPoint& other : pool) {
    if (comparable(other)) {
      other.penalty *=
          chance_outside_ball(slope * away(other), chosen.mean() - best, chosen.deviation());
    }
  }
}

}  // namespace hone::search
