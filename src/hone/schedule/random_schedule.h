// schedule/random_schedule.h - for fuzzing: random small tasks and random legal schedules of them.
#pragma once

#include "hone/base/rng.h"
#include "hone/schedule/bounds.h"

namespace hone::schedule {

// Contractions, windows, pooling, transposes and chains of them, with odd shapes.
[[nodiscard]] compute::Dag random_dag(Rng& rng);

// Tries `attempts` random steps and keeps those that are legal and whose bounds exist.
[[nodiscard]] Steps random_steps(const compute::Dag& dag, Rng& rng, int attempts);

}  // namespace hone::schedule
