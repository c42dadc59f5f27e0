// measure/counter_events.h - the hardware events that tell what limits a program, and the meaning
// of their counts: "memory bound" and "core bound" of the top-down method (A. Yasin, ISPASS 2014,
// level 2). Counting itself is in counters.h, so this can be tested on any machine.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hone/base/status.h"
#include "hone/target/cpuid.h"
#include "hone/trial/bounds.h"

namespace hone::measure {

struct CounterEvent {
  std::string_view name;
  // Such as "event=0x76,umask=0x00"; if empty, as the kernel's file of that name says.
  std::string_view terms;
};

// The events to count on one kind of CPU. They form one group, which is counted at the same time.
struct CounterPlan {
  std::string_view name;  // source in records; never reused or changed
  bool (*fits)(const target::CpuId& cpu);
  std::span<const CounterEvent> events;  // leader of the group first
  // Returns the scores for the counts, which are in the order of events; nothing if they are
  // inconclusive.
  std::optional<trial::BoundScores> (*scores)(std::span<const double> counts);
};
[[nodiscard]] std::span<const CounterPlan> counter_plans();
// Returns null if there is no plan for this CPU.
[[nodiscard]] const CounterPlan* find_counter_plan(const target::CpuId& cpu);

// Returns where the bits of a term are: "config:0-7,32-35".
using TermFormat = std::function<Result<std::string>(std::string_view term)>;
// Encodes "event=0x1a0,umask=0x1e" as the word that perf_event_open() takes. A term without a value
// is 1.
[[nodiscard]] Result<uint64_t> encode_event(std::string_view terms, const TermFormat& format_of);

// A plan with the kernel's numbers.
struct HardwareEvents {
  const CounterPlan* plan = nullptr;
  uint32_t type = 0;  // type of the device
  std::vector<uint64_t> configs;
};
// Reads the numbers from the files below `devices`. The error says what is missing.
[[nodiscard]] Result<HardwareEvents> find_events(
    const target::CpuId& cpu, const std::string& devices = "/sys/bus/event_source/devices");

}  // namespace hone::measure
