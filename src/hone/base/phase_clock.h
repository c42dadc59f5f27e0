// base/phase_clock.h - attributes the wall time of a job's main thread to what the job was doing:
// at each moment to one phase, so that the phases add up to the whole time. Other threads must not
// use it.
#pragma once

#include <array>

#include "hone/base/clock.h"

namespace hone {

enum class Phase : uint8_t {
  kOther,      // everything that has no phase of its own: import, passes over the graph, records
  kMeasuring,  // running candidates, or waiting until they have run
  kCompiling,  // making machine code, or waiting for it
  kChoosing,   // predicting, proposing and lowering schedules
  kPacking,    // packing weights, linking, writing the library
  kChecking,   // comparing the library with the model as imported
  kWaiting,    // waiting until the threads have cores of their own
};
inline constexpr size_t kPhases = 7;

class PhaseClock {
 public:
  // Counts from `start`, a time on that clock, in Phase::kOther.
  PhaseClock(const Clock& clock, double start) : clock_(clock), since_(start) {}
  // Begins another phase and returns the one that it interrupts.
  Phase enter(Phase phase);
  // Returns the seconds of a phase up to now.
  [[nodiscard]] double seconds(Phase phase) const;

 private:
  const Clock& clock_;
  double since_;
  Phase phase_ = Phase::kOther;
  std::array<double, kPhases> seconds_{};
};

// Enters a phase until it is destroyed. What it interrupted goes on then. Without a clock, which
// may be null, it does nothing.
class InPhase {
 public:
  InPhase(PhaseClock* clock, Phase phase)
      : clock_(clock), before_(clock != nullptr ? clock->enter(phase) : Phase::kOther) {}
  InPhase(const InPhase&) = delete;
  InPhase& operator=(const InPhase&) = delete;
  ~InPhase() {
    if (clock_ != nullptr) clock_->enter(before_);
  }

 private:
  PhaseClock* clock_;
  Phase before_;
};

}  // namespace hone
