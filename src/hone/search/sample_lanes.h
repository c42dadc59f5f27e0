// search/sample_lanes.h - what a data set has and still wants: for every task on every device (a
// lane) and number of threads (a slot) the schedules that are stored, the seconds spent on them,
// and whose turn it is (internal to sample_tasks).
#pragma once

#include <map>

#include "hone/search/sample_tasks.h"
#include "hone/search/schedule_sampler.h"

namespace hone::search {

inline constexpr double kTurnShare = 0.25;  // of a task's seconds in one turn, at most
inline constexpr double kOverhead = 0.01;   // seconds of a record beside its runs, for resuming
inline constexpr int kRunsOfRecord = 8;     // ... and how many runs it took

// A task on a device with a number of threads.
struct Slot {
  std::unordered_set<uint64_t> stored;  // hashes of the steps
  double spent = 0;                     // seconds
  int64_t timed = 0;                    // records of this call, and their seconds
  double timed_seconds = 0;
  double scale = 0;  // seconds of the default schedule when it was first measured; 0: never
  FastestPoints fastest;
};

struct Lane {
  size_t task = 0, device = 0;
  std::vector<Slot> slots;                // by options.threads
  std::unordered_set<uint64_t> taken;     // schedules, measured or about to be
  std::unordered_set<uint64_t> programs;  // of this call
  std::vector<schedule::Steps> pending;   // measured with one number of threads and not another
  std::map<std::string, int> named;       // records, by the network that they name
  bool loaded = false, exhausted = false;
  int barren = 0;      // turns without a record, one after the other, up to now
  int64_t rounds = 0;  // by what was stored, then turns
};

class SampleLanes {
 public:
  // Everything pointed to outlives it.
  SampleLanes(std::span<const SampledTask> tasks, const SampleOptions& options);
  // Everything stored for these tasks, devices and numbers of threads.
  [[nodiscard]] Status count_stored();
  // What the store knows of a lane's schedules, on its first turn.
  [[nodiscard]] Status load(Lane& lane, const space::Space& space);

  // A network that no record of the task on the device names gets one, however many there are (but
  // where the space has no further schedule): who holds the network out knows its tasks from them.
  [[nodiscard]] bool open(const Lane& lane, const Slot& slot) const {
    const bool wants =
        std::ssize(slot.stored) < options_.schedules && slot.spent < options_.task_seconds;
    return !lane.exhausted && (wants || unnamed(lane) > 0);
  }
  [[nodiscard]] int64_t unnamed(const Lane& lane) const;
  // Of the networks that have the lane's task the one that the fewest records name.
  [[nodiscard]] std::string next_name(const Lane& lane) const;
  [[nodiscard]] bool open(const Lane& lane) const;
  [[nodiscard]] bool complete() const;
  // The first of the open lanes that have had the fewest rounds, those with networks that no record
  // names before others, and gives it one; null: none.
  [[nodiscard]] Lane* next();
  // Schedules for the lane's turn.
  [[nodiscard]] int wanted_now(const Lane& lane) const;
  // Fills in stored, wanted and open, and returns how many open slots still want.
  int64_t count(SampleProgress& progress) const;

 private:
  std::span<const SampledTask> tasks_;
  const SampleOptions& options_;
  std::vector<Lane> lanes_;  // by task, then device
};

}  // namespace hone::search
