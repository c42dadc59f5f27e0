// schedule/thread_legality.h - checks what schedules for GPUs must keep: a block runs its loops as
// a whole down to the loops over threads; what a block computes is divided among its threads and
// lies in shared memory or in their registers.
#pragma once

#include "hone/schedule/bounds.h"

namespace hone::schedule {

// Returns why the loops over threads, or what is stored around them, are illegal.
[[nodiscard]] Status check_threads(const State& state, const Bounds& bounds);

}  // namespace hone::schedule
