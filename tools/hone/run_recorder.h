// tools/hone/run_recorder.h - records a run of `hone tune` for its report. The thread that tunes
// tells it each measurement; another one may ask for what is known so far.
#pragma once

#include <map>
#include <mutex>

#include "hone/progress.h"

#include "tuning_run.h"

namespace hone::tool {

class RunRecorder {
 public:
  // `start` is when the budget began, in the seconds of the real clock.
  RunRecorder(std::string model, const CompileOptions& options, double start);

  void add(const TrialInfo& trial);
  void add(const TuneProgress& progress);
  // Returns what is known while the run goes on. It has no programs.
  [[nodiscard]] TuningRun so_far() const;
  // Returns the number of measurements and of calls with progress, to see whether anything is new.
  [[nodiscard]] int64_t changes() const;
  // Returns the whole run. `name` is that of its file.
  [[nodiscard]] TuningRun finished(const TuneSummary& summary, const std::string& name) const;

 private:
  [[nodiscard]] TuningRun common() const;  // called under mutex_

  const double start_;
  mutable std::mutex mutex_;
  TuningRun about_;  // without kernels
  std::map<uint64_t, KernelHistory> histories_;
  TuneProgress progress_;
  int64_t trials_ = 0, changes_ = 0;
};

}  // namespace hone::tool
