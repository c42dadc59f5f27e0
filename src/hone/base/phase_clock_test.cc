#include "hone/base/phase_clock.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

TEST(phase_clock, phases_that_interrupt_each_other_add_up_to_the_whole_time) {
  ManualClock clock(100);
  PhaseClock phases(clock, 98);  // two seconds before anyone could ask
  {
    const InPhase compiling(&phases, Phase::kCompiling);
    clock.advance(3);
    {
      const InPhase measuring(&phases, Phase::kMeasuring);
      clock.advance(5);
    }
    clock.advance(1);
    EXPECT_DOUBLE_EQ(phases.seconds(Phase::kCompiling), 4);  // while it runs
  }
  clock.advance(7);
  EXPECT_DOUBLE_EQ(phases.seconds(Phase::kMeasuring), 5);
  EXPECT_DOUBLE_EQ(phases.seconds(Phase::kCompiling), 4);
  EXPECT_DOUBLE_EQ(phases.seconds(Phase::kOther), 9);
  EXPECT_DOUBLE_EQ(phases.seconds(Phase::kPacking), 0);
}

TEST(phase_clock, nothing_is_counted_without_a_clock) {
  const InPhase measuring(nullptr, Phase::kMeasuring);
}

}  // namespace
}  // namespace hone
