// search/sample_lanes.h - the progress of a data set: for every task on every device (a lane) and
// number of threads (a slot) the schedules that are stored, the seconds spent on them, and whose
// turn it is (internal to sample_tasks).
#pragma once

#include <map>

#include "hone/search/sample_tasks.h"
#include "hone/search/schedule_sampler.h"

namespace hone::search {

inline constexpr double kTurnShare = 0.25;  // largest share of a task's seconds in one turn
inline constexpr double kOverhead = 0.01;   // estimated seconds of a stored record beside its runs
inline constexpr int kRunsOfRecord = 8;     // estimated number of runs of a stored record

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
  std::vector<Slot> slots;                // one per entry of options.threads
  std::unordered_set<uint64_t> taken;     // schedules, measured or about to be
  std::unordered_set<uint64_t> programs;  // hashes of known programs
  std::vector<schedule::Steps> pending;   // taken, but not measured with each number of threads
  std::map<std::string, int> named;       // records, by the network that they name
  bool loaded = false;
  bool exhausted = false;  // the space has no schedule that is not taken
  bool left_out = false;   // nothing can be prepared
  int prepared = 0;        // turns that are prepared and not measured yet
  int64_t rounds = 0;      // turns so far, estimated for what was stored before
};

class SampleLanes {
 public:
  // Everything pointed to outlives it.
  SampleLanes(std::span<const SampledTask> tasks, const SampleOptions& options);
  // Counts everything that is stored for these tasks, devices and numbers of threads.
  [[nodiscard]] Status count_stored();
  // Reads what the store knows of a lane's schedules, on its first turn.
  [[nodiscard]] Status load(Lane& lane, const space::Space& space);

  // Returns whether a slot wants more records. A network that no record of the task on the device
  // names gets one, however many records there are: these names tell whoever holds the network out
  // which tasks it has.
  [[nodiscard]] bool wants(const Lane& lane, const Slot& slot) const {
    const bool few = std::ssize(slot.stored) < options_.schedules;
    return (few && slot.spent < options_.task_seconds) || unnamed(lane) > 0;
  }
  // Returns whether a slot wants more records and may get some.
  [[nodiscard]] bool open(const Lane& lane, const Slot& slot) const {
    return (lane.prepared > 0 || has_more(lane)) && wants(lane, slot);
  }
  // Returns the number of networks of the lane's task that no record names.
  [[nodiscard]] int64_t unnamed(const Lane& lane) const;
  // Returns the network that the fewest records name, of those that have the lane's task.
  [[nodiscard]] std::string next_name(const Lane& lane) const;
  [[nodiscard]] bool open(const Lane& lane) const;
  // Returns whether no lane is open or was left out.
  [[nodiscard]] bool complete() const;
  // Returns the first of the open lanes with schedules for a turn that have had the fewest rounds,
  // and counts one more for it. Lanes with networks that no record names come before others.
  // Returns null if there is none.
  [[nodiscard]] Lane* next();
  // Returns the number of schedules for the lane's turn.
  [[nodiscard]] int wanted_now(const Lane& lane) const;
  // Fills in stored, wanted and open, and returns how many schedules the open slots still want.
  int64_t count(DatasetProgress& progress) const;

 private:
  // Returns whether there may be schedules for another turn.
  [[nodiscard]] static bool has_more(const Lane& lane) {
    return !lane.left_out && (!lane.exhausted || !lane.pending.empty());
  }

  std::span<const SampledTask> tasks_;
  const SampleOptions& options_;
  std::vector<Lane> lanes_;  // by task, then device
};

}  // namespace hone::search
