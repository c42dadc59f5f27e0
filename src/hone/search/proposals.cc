#include "hone/search/proposals.h"

namespace hone::search {

bool Proposals::fresh(const space::Point& any) const {
  const space::Point point = space_.canonical(any);
  return !points_.contains(space::hash(point)) &&
         !schedules_.contains(schedule::hash(space_.steps(point)));
}

bool Proposals::take(const space::Point& any) {
  const space::Point point = space_.canonical(any);
  if (!points_.insert(space::hash(point)).second) return false;
  return schedules_.insert(schedule::hash(space_.steps(point))).second;
}

}  // namespace hone::search
