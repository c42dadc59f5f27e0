// tune_phases.h - makes the summary of what the seconds of a tune went to (internal).
#pragma once

#include "hone/base/phase_clock.h"
#include "hone/tune.h"

namespace hone {

// Returns the seconds of all phases up to now. `overlapped` is TuneSeconds::overlapped.
[[nodiscard]] TuneSeconds tune_seconds(const PhaseClock& phases, double overlapped);

}  // namespace hone
