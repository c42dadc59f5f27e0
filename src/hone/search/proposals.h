// search/proposals.h - the points a search has already spent: no point, and no two points that are
// known to make the same program (space::Space::canonical) or the same steps, are handed out twice.
#pragma once

#include <unordered_set>

#include "hone/space/space.h"

namespace hone::search {

class Proposals {
 public:
  explicit Proposals(const space::Space& space) : space_(space) {}
  [[nodiscard]] bool fresh(const space::Point& point) const;
  // Marks the point as spent. Returns false if it was spent already.
  bool take(const space::Point& point);
  [[nodiscard]] size_t size() const { return points_.size(); }

 private:
  const space::Space& space_;
  std::unordered_set<uint64_t> points_, schedules_;
};

}  // namespace hone::search
