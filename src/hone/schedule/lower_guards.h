// schedule/lower_guards.h - the tests that keep the points of a stage inside what it computes.
#pragma once

#include "hone/schedule/lower_index.h"

namespace hone::schedule {

// A test that a point of a stage must pass, and the number of its own loops that must be open.
struct Guard {
  ir::Expr condition;
  int level = 0;
  bool update_only = false;  // concerns reduce axes: does not hold back the initial value
};

struct StageGuards {
  std::vector<Guard> guards;
  std::vector<int> peeled;  // leaves whose first and last iterations guards tell from the others
};

[[nodiscard]] StageGuards guards_of(const State& state, const Bounds& bounds, const IndexMap& index,
                                    int s);

// Those of a level as one condition, or null; `initial`: those that hold back the initial value.
[[nodiscard]] ir::Expr guard_at(const std::vector<Guard>& guards, int level, bool initial = false);

}  // namespace hone::schedule
