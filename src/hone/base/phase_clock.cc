#include "hone/base/phase_clock.h"

#include <utility>

namespace hone {

Phase PhaseClock::enter(Phase phase) {
  const double now = clock_.now_seconds();
  seconds_[static_cast<size_t>(phase_)] += now - since_;
  since_ = now;
  return std::exchange(phase_, phase);
}

double PhaseClock::seconds(Phase phase) const {
  const double running = phase == phase_ ? clock_.now_seconds() - since_ : 0;
  return seconds_[static_cast<size_t>(phase)] + running;
}

}  // namespace hone
