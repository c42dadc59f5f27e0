// cost/decision_history.h - what models that were trained on schedules of earlier programs do not
// know: a space gets decisions that earlier ones did not have (space::came_later), and such models
// do not rank points by them (docs/user/cost_models.md, "Decisions that came later").
#pragma once

#include <utility>
#include <vector>

#include "hone/space/space.h"

namespace hone::cost {

class DecisionHistory {
 public:
  // Of a space, which stays where it is.
  explicit DecisionHistory(const space::Space& space);
  // The point with later decisions made by rule of thumb: what an earlier model can judge. It may
  // be illegal.
  [[nodiscard]] space::Point as_usual(space::Point point) const;
  // Whether a product has blocks or panels, which no point of an earlier program has.
  [[nodiscard]] bool has_blocks(const space::Point& point) const;

 private:
  const space::Space& space_;
  // By sketch: later decisions, and what the rule of thumb chooses.
  std::vector<std::vector<std::pair<size_t, int>>> usual_;
};

}  // namespace hone::cost
