// trial/record.h - one trial: a schedule of a task, run on a device, and how long it took.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hone/base/status.h"
#include "hone/trial/accuracy.h"
#include "hone/trial/bounds.h"
#include "hone/trial/outcome.h"

namespace hone::trial {

struct Record {
  int64_t id = 0;            // given by the store
  uint64_t task = 0;         // the task key
  std::string kernel_class;  // "conv2d+bias+relu"
  std::string
      task_text;       // the task, so that it can be built again; empty in answers unless asked for
  std::string device;  // target::device_key
  std::string version;    // of compiler and space: what makes times and decisions comparable
  std::string algorithm;  // "direct", "winograd_4", ...
  std::string steps;      // the schedule as text
  Accuracy accuracy = Accuracy::kStrict;  // accuracy_of(steps)
  std::string decisions;                  // the point of the space as text; may be empty
  Outcome outcome = Outcome::kOk;
  std::string message;        // why, if not ok
  std::vector<double> times;  // raw samples, seconds a run
  // Robust centre of them, divided by `drift`; 0 if the outcome is not ok. After a duel what that
  // says, so a trial that was not crowned is never below the best of its time.
  double centre = 0;
  double low = 0, high = 0;  // its confidence interval
  double drift = 1;          // what the machine took then / when the task was first measured
  bool crowned = false;      // first of its task, or faster than the best so far at 95% confidence
  // Raw samples of the duel with the best so far: a pair for each turn, this one's time first.
  std::vector<double> duel;
  int threads = 1;
  uint64_t seed = 0;
  bool verified = false;  // its output was compared with the reference: it may be a best
  int64_t unix_time = 0;  // seconds
  double host_load = 0;   // the 1-minute load average when it was measured ...
  double others = 0;      // ... the share of all cores that other programs took ...
  double steal = 0;       // ... and that the machine's own host took away
  std::string model;      // where the task came from; may be empty
  std::optional<CountedBounds> bounds;  // where hardware counters were read

  // Seconds that can be compared with another task's: `centre`, unless the machine has been faster
  // since the task's first time.
  [[nodiscard]] double quiet_seconds() const { return drift < 1 ? centre * drift : centre; }
};

// Why a store must refuse this record, or ok: an ok record has times, a verified one is ok, a
// crowned one too; its accuracy is that of its steps.
[[nodiscard]] Status check(const Record& record);

}  // namespace hone::trial
