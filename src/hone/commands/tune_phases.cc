#include "hone/commands/tune_phases.h"

namespace hone {

TuneSeconds tune_seconds(const PhaseClock& phases, double overlapped) {
  return {.measuring = phases.seconds(Phase::kMeasuring),
          .compiling = phases.seconds(Phase::kCompiling),
          .choosing = phases.seconds(Phase::kChoosing),
          .packing = phases.seconds(Phase::kPacking),
          .checking = phases.seconds(Phase::kChecking),
          .waiting = phases.seconds(Phase::kWaiting),
          .other = phases.seconds(Phase::kOther),
          .overlapped = overlapped};
}

}  // namespace hone
