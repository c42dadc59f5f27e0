// measure/counters.h - counts hardware events of this process (Linux: perf_event_open), in user
// mode only, and says by them what holds a piece of code up.
#pragma once

#include "hone/measure/counter_events.h"

namespace hone::measure {

// What one group of counters has counted.
struct GroupCounts {
  uint64_t enabled = 0, running = 0;  // ns that it should have counted, and that it did
  std::vector<uint64_t> counts;
};
// The sums over groups. One that had to share the counters with others is scaled to all its time;
// nothing if one never had them, or if nothing ran.
[[nodiscard]] std::optional<std::vector<double>> add_up(std::span<const GroupCounts> groups);

// A group of events for each thread that the process has when it is opened.
class Counters {
 public:
  // The error says what the system does not allow.
  [[nodiscard]] static Result<Counters> open(uint32_t type, std::span<const uint64_t> configs);
  Counters(Counters&& other) noexcept : threads_(std::exchange(other.threads_, {})) {}
  Counters& operator=(Counters&&) = delete;
  ~Counters();
  // Counts between the two; any number of times.
  void start() const;
  void stop() const;
  [[nodiscard]] Result<std::vector<double>> counts() const;
  [[nodiscard]] size_t num_threads() const { return threads_.size(); }

 private:
  Counters() = default;
  [[nodiscard]] Status add_thread(int thread, uint32_t type, std::span<const uint64_t> configs);
  std::vector<std::vector<int>> threads_;  // descriptors, the leader first
};

// What can be counted here; asked once. The error says why nothing can.
[[nodiscard]] const Result<HardwareEvents>& machine_events();

// Of what `run` does between start and stop.
[[nodiscard]] Result<trial::CountedBounds> count_bounds(
    const HardwareEvents& events, const std::function<void(const Counters&)>& run);

}  // namespace hone::measure
