// schedule/legality.h - what must hold of a State once its bounds are known: where vectorized and
// parallel loops stand, that registers are never indexed by a loop, that padded tails read inside.
#pragma once

#include "hone/schedule/bounds.h"

namespace hone::schedule {

// The reason why `state` is illegal; infer_bounds() asks it last.
[[nodiscard]] Status check_legality(const State& state, const Bounds& bounds);

}  // namespace hone::schedule
