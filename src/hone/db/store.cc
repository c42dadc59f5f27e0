#include "hone/db/store.h"

#include "hone/schedule/step.h"

namespace hone::db {

bool BestQuery::takes(std::string_view other_algorithm) const {
  if (!algorithm.empty() && other_algorithm != algorithm) return false;
  if (schedule::is_narrow(other_algorithm)) return accuracy == space::Accuracy::kFast;
  return accuracy != space::Accuracy::kStrict || !schedule::rounds_more(other_algorithm);
}

}  // namespace hone::db
