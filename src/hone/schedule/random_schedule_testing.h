// schedule/random_schedule_testing.h - random small tasks, and random legal schedules of them, for
// fuzzing.
#pragma once

#include "hone/base/rng.h"
#include "hone/schedule/bounds.h"

namespace hone::schedule {

// Makes contractions, windows, pooling, transposes and chains of them, with odd shapes.
[[nodiscard]] compute::Dag random_dag(Rng& rng);

// Tries `attempts` random steps and returns those that are legal and whose bounds exist.
[[nodiscard]] Steps random_steps(const compute::Dag& dag, Rng& rng, int attempts);

}  // namespace hone::schedule
