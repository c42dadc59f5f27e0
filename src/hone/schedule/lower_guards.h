// schedule/lower_guards.h - the tests that keep the points of a stage within the bounds that it
// computes.
#pragma once

#include "hone/schedule/lower_index.h"

namespace hone::schedule {

// A test of a point of a stage, and how many of the stage's own loops must be open around it.
struct Guard {
  ir::Expr condition;
  int level = 0;
  bool update_only = false;  // tests reduce axes only, so the initial value is stored regardless
};

struct StageGuards {
  std::vector<Guard> guards;
  std::vector<int> peeled;  // leaves with guards that fail in the first or last iterations only
};

[[nodiscard]] StageGuards guards_of(const State& state, const Bounds& bounds, const IndexMap& index,
                                    int s);

// Returns the guards of a level as one condition, or null. With `initial`, only those that also
// guard the initial value count.
[[nodiscard]] ir::Expr guard_at(const std::vector<Guard>& guards, int level, bool initial = false);

}  // namespace hone::schedule
