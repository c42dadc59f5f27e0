// measure/counter_events.h - which hardware events say what holds a program up, and what their
// counts mean: "memory bound" and "core bound" of the top-down method (A. Yasin, ISPASS 2014,
// level 2). Nothing is counted here (counters.h does that), so it can be tested on any machine.
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
  std::string_view terms;  // "event=0x76,umask=0x00"; empty: as the kernel's file of that name says
};

// What is counted on one kind of CPU. All events are one group: they are counted at the same time.
struct CounterPlan {
  std::string_view name;  // the source in records: never reuse or rename one
  bool (*fits)(const target::CpuId& cpu);
  std::span<const CounterEvent> events;  // the group's leader first
  // Of the counts, in that order; nothing if they say nothing.
  std::optional<trial::BoundScores> (*scores)(std::span<const double> counts);
};
[[nodiscard]] std::span<const CounterPlan> counter_plans();
// Null if there is none for this CPU.
[[nodiscard]] const CounterPlan* find_counter_plan(const target::CpuId& cpu);

// Where the bits of a term go: "config:0-7,32-35".
using TermFormat = std::function<Result<std::string>(std::string_view term)>;
// "event=0x1a0,umask=0x1e" as the word that perf_event_open() takes; a term without a value is 1.
[[nodiscard]] Result<uint64_t> encode_event(std::string_view terms, const TermFormat& format_of);

// A plan in the kernel's numbers.
struct HardwareEvents {
  const CounterPlan* plan = nullptr;
  uint32_t type = 0;  // of the device
  std::vector<uint64_t> configs;
};
// As the files below `devices` describe them; the error says what is missing.
[[nodiscard]] Result<HardwareEvents> find_events(
    const target::CpuId& cpu, const std::string& devices = "/sys/bus/event_source/devices");

}  // namespace hone::measure
