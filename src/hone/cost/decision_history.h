// cost/decision_history.h - the decisions that models of earlier programs do not know. A space gets
// decisions that earlier ones did not have (space::came_later), and models that were trained on
// schedules of earlier programs do not rank points by them (docs/user/cost_models.md, "Decisions
// that came later").
#pragma once

#include <utility>
#include <vector>

#include "hone/space/space.h"

namespace hone::cost {

class DecisionHistory {
 public:
  // The space must outlive it and must not move.
  explicit DecisionHistory(const space::Space& space);
  // Returns the point with later decisions as the default point has them, which an earlier model
  // can judge. The point may be illegal.
  [[nodiscard]] space::Point as_usual(space::Point point) const;
  // Returns whether a product has blocks or panels, which no point of an earlier program has.
  [[nodiscard]] bool has_blocks(const space::Point& point) const;

 private:
  const space::Space& space_;
  // Per sketch: the later decisions and their choices in the default point.
  std::vector<std::vector<std::pair<size_t, int>>> usual_;
};

}  // namespace hone::cost
