#include "hone/db/store.h"

#include <algorithm>

#include "hone/schedule/step.h"

namespace hone::db {

bool BestQuery::takes(const Record& record) const {
  return (algorithm.empty() || record.algorithm == algorithm) && record.accuracy <= accuracy;
}

std::pair<int64_t, int64_t> BestQuery::accuracies() const {
  const auto most = static_cast<int64_t>(accuracy);
  if (algorithm.empty()) return {0, most};
  space::Accuracy own = space::Accuracy::kStrict;
  if (schedule::rounds_more(algorithm)) own = space::Accuracy::kDefault;
  if (schedule::is_narrow(algorithm)) own = space::Accuracy::kFast;
  return {static_cast<int64_t>(own), std::min(most, static_cast<int64_t>(own))};
}

}  // namespace hone::db
