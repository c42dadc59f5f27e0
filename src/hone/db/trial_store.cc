#include "hone/db/trial_store.h"

#include <algorithm>

namespace hone::db {

bool BestQuery::takes(const trial::Record& record) const {
  return (algorithm.empty() || record.algorithm == algorithm) && record.accuracy <= accuracy;
}

std::pair<int64_t, int64_t> BestQuery::accuracies() const {
  const auto most = static_cast<int64_t>(accuracy);
  if (algorithm.empty()) return {0, most};
  const auto own = static_cast<int64_t>(trial::accuracy_of_algorithm(algorithm));
  return {own, std::min(most, own)};
}

}  // namespace hone::db
