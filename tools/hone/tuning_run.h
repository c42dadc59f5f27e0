// tools/hone/tuning_run.h - all that a report shows of one tuning: its kernels with their
// measurements, and where the time went. A run of `hone tune` makes one, and so does a database.
// docs/user/report.md describes its JSON.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hone/tune.h"

#include "json_text.h"
#include "kernel_history.h"
#include "limits.h"

namespace hone::tool {

// The last times of a kernel's schedules for a part of its task, as runs of smaller sizes need it.
struct PartTimes {
  std::map<std::string, double> seconds;  // by the schedule
  int64_t failed = 0;
  [[nodiscard]] double least() const;  // 0 if there is none
  [[nodiscard]] double most() const;
};

struct RunKernel {
  TaskSummary task;  // with multiplicity 0 if it was measured, but is no part of the model
  TaskPrograms programs;
  KernelHistory history;
  double bound_seconds = 0;  // as in TaskProgress; where no limits of the machine are known
  std::map<std::string, PartTimes> parts;  // of a database, by the part
};

struct TuningRun {
  bool of_database = false;  // then each kernel counts once, as nobody knows how often it occurs
  std::string name;          // of the file that it is from
  std::string model;         // may be empty
  std::string device;        // its key
  int threads = 1;
  int64_t began = 0;               // Unix time in seconds
  double seconds = 0, budget = 0;  // budget: 0 if there was none
  int64_t trials = 0;
  bool interrupted = false, running = false;
  double model_seconds = 0, untuned_model_seconds = 0;  // as in TuneSummary
  bool kept_untuned = false;
  std::string not_compared;
  std::optional<TuneSeconds> spent;
  std::vector<FailureSummary> failures;
  std::optional<Roofline> roofline;
  std::vector<std::string> notes;  // what else the reader should know, as whole sentences
  std::vector<RunKernel> kernels;
};

// Pairs of what the seconds went to and how many, in the order in which they are told.
[[nodiscard]] std::vector<std::pair<const char*, double>> parts_of(const TuneSeconds& spent);

// What tells a run file from other JSON. The version grows if a field changes its meaning.
inline constexpr const char* kRunFormat = "hone run";
inline constexpr int kRunVersion = 1;
// The bytes of schedules and programs in a report. All schedules are there, and programs while
// there is room, which is for some in any case.
inline constexpr int64_t kMostTextBytes = 2'400'000;
inline constexpr int64_t kLeastProgramBytes = 400'000;

// The run as JSON, of a size that does not grow with the number of measurements.
[[nodiscard]] Json to_json(const TuningRun& run, const Limits& limits);

}  // namespace hone::tool
