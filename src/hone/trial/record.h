// trial/record.h - one trial: a schedule of a task that was run on a device, and the time that it
// took.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hone/base/status.h"
#include "hone/code_figures.h"
#include "hone/trial/accuracy.h"
#include "hone/trial/bounds.h"
#include "hone/trial/outcome.h"

namespace hone::trial {

struct Record {
  int64_t id = 0;            // assigned by the store
  uint64_t task = 0;         // task key
  std::string kernel_class;  // such as "conv2d+bias+relu"
  // Text from which the task can be built again. Stores return it only if asked to.
  std::string task_text;
  std::string device;  // as target::device_key returns it
  // Version of compiler and space; only times and decisions of one version are comparable.
  std::string version;
  std::string algorithm;                  // such as "direct" or "winograd_4"
  std::string steps;                      // steps of the schedule as text
  Accuracy accuracy = Accuracy::kStrict;  // as accuracy_of(steps) returns it
  std::string decisions;                  // point of the space as text; may be empty
  Outcome outcome = Outcome::kOk;
  std::string message;        // reason, if the outcome is not ok
  std::vector<double> times;  // raw samples in seconds per run
  // The robust centre of the samples divided by `drift`; 0 if the outcome is not ok. After a duel
  // it is corrected by the duel's ratio, so a trial that was not crowned is never below the best of
  // its time.
  double centre = 0;
  double low = 0, high = 0;  // confidence interval of the centre
  // Time that the same work takes at this trial / at the first measurement of the task.
  double drift = 1;
  // True for the first trial of its task, and for one that was faster than the best so far at 95%
  // confidence.
  bool crowned = false;
  // Raw samples of the duel with the best so far, in pairs: this trial's time, then the
  // incumbent's.
  std::vector<double> duel;
  int threads = 1;
  uint64_t seed = 0;
  // True if the output was compared with the reference. Only such a trial can be a best.
  bool verified = false;
  int64_t unix_time = 0;  // in seconds
  double host_load = 0;   // 1-minute load average during the measurement
  double others = 0;      // share of all cores that other programs used
  double steal = 0;       // share that the hypervisor gave to other virtual machines
  std::string model;      // model that the task came from; may be empty
  // The part of the task that was computed, as a run of smaller sizes needs it, by code that leaves
  // out the rest: text of session/size_times.h. Empty: all of it. Such a record is never verified,
  // so that it is no best of the task.
  std::string part;
  std::optional<CountedBounds> bounds;  // set if hardware counters were read
  std::optional<CodeFigures> code;      // set if the binary of a GPU says what it takes

  // Seconds that can be compared with another task's: `centre`, corrected if the machine was slower
  // at the task's first measurement than at this one.
  [[nodiscard]] double undisturbed_seconds() const { return drift < 1 ? centre * drift : centre; }
};

// Returns ok, or why a store must refuse this record: a record with outcome ok has times, only such
// a record can be verified or crowned, and the accuracy must be that of the steps.
[[nodiscard]] Status check(const Record& record);

}  // namespace hone::trial
