// schedule/legality.h - checks a State once its bounds are known: the places of vectorized and
// parallel loops, that no loop indexes registers, and that padded tails read inside their buffers.
#pragma once

#include "hone/schedule/bounds.h"

namespace hone::schedule {

// Returns the reason why `state` is illegal, or ok. infer_bounds() calls this last.
[[nodiscard]] Status check_legality(const State& state, const Bounds& bounds);

}  // namespace hone::schedule
