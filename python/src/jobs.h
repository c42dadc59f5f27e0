// jobs.h - jobs that take seconds or minutes: they run without the GIL in a thread of their own,
// while the thread that called them looks for signals and delivers progress.
#pragma once

#include <hone/tune.h>
#include <nanobind/nanobind.h>

#include <functional>
#include <optional>

#include "errors.h"
#include "python_calls.h"

namespace hone::python {

// Says what a job that is asked to end leaves behind: the best library that it has, or none.
enum class AtTheEnd { kWritesTheBest, kWritesNothing };

// Runs `work` and returns when it has ended. `on_progress`, if it is not None, is called with a
// TuneProgress a few times a second. If it raises, or a signal does (Ctrl-C), the job ends early,
// and writes what `at_the_end` says. A second signal ends it without a library. The exception is
// raised when the job has ended. `calls`, if it is not null, are served meanwhile, and an exception
// of one counts like one of `on_progress`.
void run_job(TuneOptions& options, AtTheEnd at_the_end, nanobind::handle on_progress,
             const std::function<void()>& work, PythonCalls* calls = nullptr);

// Runs work that has a result in the same way, and returns the result or raises its error.
template <typename T>
T run_job(TuneOptions& options, AtTheEnd at_the_end, nanobind::handle on_progress,
          const std::function<Result<T>()>& work, PythonCalls* calls = nullptr) {
  std::optional<Result<T>> result;
  run_job(
      options, at_the_end, on_progress, [&] { result.emplace(work()); }, calls);
  return value_or_raise(std::move(*result));
}

// Says that this thread runs a model, or works on one, without the GIL, for as long as it lives. It
// raises InputError once the interpreter is about to go away: a thread could not come back from
// there.
class RunningModel {
 public:
  RunningModel();
  ~RunningModel();
  RunningModel(const RunningModel&) = delete;
  RunningModel& operator=(const RunningModel&) = delete;
};

// Ends all jobs, and waits until they and all runs of models have ended. It is called before the
// interpreter goes away.
void end_all_jobs();
// Forgets the jobs and runs of the process from which this one was forked.
void forget_jobs();

}  // namespace hone::python
