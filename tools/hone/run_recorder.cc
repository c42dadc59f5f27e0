#include "run_recorder.h"

#include <ctime>
#include <set>

#include "hone/base/clock.h"

namespace hone::tool {
namespace {

// What the names of tasks begin with that may take the place of others in the model.
constexpr std::string_view kInstead = "instead: ";

}  // namespace

RunRecorder::RunRecorder(std::string model, const CompileOptions& options, double start)
    : start_(start) {
  about_.model = std::move(model);
  about_.threads = options.target.threads;
  about_.began = std::time(nullptr);
  if (const Result<Device> device = find_device(options.target.device, options.target.machine);
      device.ok()) {
    about_.device = device->key;
    if (about_.threads == 0) about_.threads = device->gpu ? 1 : device->cores;
  }
}

void RunRecorder::add(const TrialInfo& trial) {
  const double now = real_clock().now_seconds();
  const std::lock_guard lock(mutex_);
  ++changes_;
  histories_[trial.task].add(trial, now - start_, ++trials_);
}

void RunRecorder::add(const TuneProgress& progress) {
  const std::lock_guard lock(mutex_);
  ++changes_;
  progress_ = progress;
}

int64_t RunRecorder::changes() const {
  const std::lock_guard lock(mutex_);
  return changes_;
}

TuningRun RunRecorder::common() const {
  TuningRun run = about_;
  run.trials = trials_;
  run.budget = progress_.budget;
  return run;
}

TuningRun RunRecorder::so_far() const {
  const std::lock_guard lock(mutex_);
  TuningRun run = common();
  run.running = true;
  run.seconds = progress_.elapsed;
  if (!progress_.stage.empty()) run.notes.push_back(fmt::format("Now: {}.", progress_.stage));
  for (const TaskProgress& task : progress_.tasks) {
    RunKernel kernel;
    kernel.task.key = task.key;
    kernel.task.name = task.name;
    kernel.task.kernel_class = task.kernel_class;
    kernel.task.multiplicity =
        task.name.starts_with(kInstead) ? 0 : static_cast<int>(task.multiplicity);
    kernel.task.seconds = task.best_seconds;
    kernel.task.untuned_seconds = task.untuned_seconds;
    kernel.task.trials = task.trials;
    kernel.bound_seconds = task.bound_seconds;
    if (const auto history = histories_.find(task.key); history != histories_.end())
      kernel.history = history->second;
    run.kernels.push_back(std::move(kernel));
  }
  return run;
}

TuningRun RunRecorder::finished(const TuneSummary& summary, const std::string& name) const {
  const std::lock_guard lock(mutex_);
  TuningRun run = common();
  run.name = name;
  run.seconds = summary.compile.seconds;
  run.interrupted = summary.interrupted;
  run.model_seconds = summary.model_seconds;
  run.untuned_model_seconds = summary.untuned_model_seconds;
  run.kept_untuned = summary.kept_untuned;
  run.not_compared = summary.not_compared;
  run.spent = summary.spent;
  run.failures = summary.failures;
  std::set<uint64_t> known;
  for (size_t i = 0; i < summary.compile.tasks.size(); ++i) {
    RunKernel kernel;
    kernel.task = summary.compile.tasks[i];
    if (i < summary.programs.size()) kernel.programs = summary.programs[i];
    if (const auto history = histories_.find(kernel.task.key); history != histories_.end())
      kernel.history = history->second;
    known.insert(kernel.task.key);
    run.kernels.push_back(std::move(kernel));
  }
  for (const auto& [key, history] : histories_) {
    if (known.contains(key)) continue;
    RunKernel kernel;  // it was tried in the place of others, which were faster
    kernel.task.key = key;
    kernel.task.multiplicity = 0;
    kernel.history = history;
    run.kernels.push_back(std::move(kernel));
  }
  return run;
}

}  // namespace hone::tool
