#include "hone/db/store.h"

#include "hone/schedule/step.h"

namespace hone::db {

void BestQuery::restrict_to(space::Accuracy accuracy) {
  if (accuracy == space::Accuracy::kStrict && algorithm.empty()) algorithm = "direct";
  narrow = accuracy == space::Accuracy::kFast;
}

bool BestQuery::takes(std::string_view other_algorithm) const {
  if (!algorithm.empty() && other_algorithm != algorithm) return false;
  return narrow || !schedule::is_narrow(other_algorithm);
}

}  // namespace hone::db
