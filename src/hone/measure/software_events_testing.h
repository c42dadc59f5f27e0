// measure/software_events_testing.h - a plan of events that need no hardware, for tests of code
// that reads counters: CPU time, which a test may treat as slots, and page faults.
#pragma once

#include <linux/perf_event.h>

#include "hone/measure/counters.h"

namespace hone::measure {

// The values of the counts do not matter to tests, only that there are some.
inline const HardwareEvents& software_events() {
  static constexpr CounterEvent kEvents[] = {{"task-clock", ""}, {"page-faults", ""}};
  static constexpr CounterPlan kPlan = {
      "software", [](const target::CpuId&) { return false; }, kEvents,
      [](std::span<const double> counts) -> std::optional<trial::BoundScores> {
        if (counts[0] <= 0) return std::nullopt;
        return trial::BoundScores{0.25, 0.5};
      }};
  static const HardwareEvents events = {
      &kPlan, PERF_TYPE_SOFTWARE, {PERF_COUNT_SW_TASK_CLOCK, PERF_COUNT_SW_PAGE_FAULTS}};
  return events;
}

// Returns whether the system lets this process count anything at all; a container may not.
inline bool may_count() {
  return Counters::open(software_events().type, software_events().configs).ok();
}

}  // namespace hone::measure
