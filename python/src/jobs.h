// jobs.h - jobs that take seconds or minutes: they run without the GIL in a thread of their own,
// while the thread that called them looks for signals and delivers progress.
#pragma once

#include <hone/tune.h>
#include <nanobind/nanobind.h>

#include <functional>
#include <optional>

#include "errors.h"

namespace hone::python {

// Runs `work` and returns when it has ended. `on_progress`, if it is not None, is called with a
// TuneProgress a few times a second. If it raises, or a signal does (Ctrl-C), the job ends early:
// a tune then writes the best library so far. A second signal ends it without a library. The
// exception is raised when the job has ended.
void run_job(TuneOptions& options, nanobind::handle on_progress, const std::function<void()>& work);

// The same for work with a result.
template <typename T>
T run_job(TuneOptions& options, nanobind::handle on_progress,
          const std::function<Result<T>()>& work) {
  std::optional<Result<T>> result;
  run_job(options, on_progress, [&] { result.emplace(work()); });
  return value_or_raise(std::move(*result));
}

// Ends all jobs and waits until they have. It is called before the interpreter goes away.
void end_all_jobs();

}  // namespace hone::python
