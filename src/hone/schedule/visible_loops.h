// schedule/visible_loops.h - tells which loops are open at a place of a State, that is, around it.
// Such a loop's variable has one value there.
#pragma once

#include <algorithm>
#include <vector>

#include "hone/schedule/bounds.h"

namespace hone::schedule {

// Answers for one place at a time. Both arguments must outlive it; `bounds` may still change, but
// last_leaf must be set for every loop that is asked for.
class VisibleLoops {
 public:
  VisibleLoops(const State& state, const Bounds& bounds)
      : state_(state), bounds_(bounds), open_(state.stages.size(), 0) {}

  void look_from(const Place& from) {
    std::fill(open_.begin(), open_.end(), 0);
    for (const Place* place = &from; place->kind == AttachKind::kAt;
         place = &state_.stages[place->stage].compute) {
      open_[place->stage] = state_.stages[place->stage].find_leaf(place->loop) + 1;
    }
  }
  [[nodiscard]] bool sees(int stage, int loop) const {
    return bounds_.stages[stage].loops[loop].last_leaf < open_[stage];
  }
  [[nodiscard]] bool sees(const Term& term) const { return sees(term.stage, term.loop); }

 private:
  const State& state_;
  const Bounds& bounds_;
  std::vector<int> open_;  // per stage: how many of its outermost leaves are open
};

}  // namespace hone::schedule
