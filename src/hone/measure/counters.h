// measure/counters.h - counts hardware events of this process (Linux: perf_event_open), in user
// mode only, and infers what limits a piece of code.
#pragma once

#include "hone/measure/counter_events.h"

namespace hone::measure {

// The counts of one group of counters.
struct GroupCounts {
  uint64_t enabled = 0, running = 0;  // ns for which it should have counted, and for which it did
  std::vector<uint64_t> counts;
};
// Adds up the groups. A group that had to share the counters with others is scaled to its full
// time; nothing is returned if one never had them, or if nothing ran.
[[nodiscard]] std::optional<std::vector<double>> add_up(std::span<const GroupCounts> groups);

// A group of events for each thread that the process has when it is opened.
class Counters {
 public:
  // Opens the counters. The error says what the system does not allow.
  [[nodiscard]] static Result<Counters> open(uint32_t type, std::span<const uint64_t> configs);
  Counters(Counters&& other) noexcept : threads_(std::exchange(other.threads_, {})) {}
  Counters& operator=(Counters&&) = delete;
  ~Counters();
  // Events between start() and stop() are counted, any number of times.
  void start() const;
  void stop() const;
  [[nodiscard]] Result<std::vector<double>> counts() const;
  [[nodiscard]] size_t num_threads() const { return threads_.size(); }

 private:
  Counters() = default;
  [[nodiscard]] Status add_thread(int thread, uint32_t type, std::span<const uint64_t> configs);
  std::vector<std::vector<int>> threads_;  // descriptors, leader of the group first
};

// Returns what can be counted on this machine; it is determined once. The error says why nothing
// can.
[[nodiscard]] const Result<HardwareEvents>& machine_events();

// Counts what `run` does between its calls of start and stop.
[[nodiscard]] Result<trial::CountedBounds> count_bounds(
    const HardwareEvents& events, const std::function<void(const Counters&)>& run);

}  // namespace hone::measure
