#include "jobs.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <set>
#include <thread>

#include "progress.h"

namespace hone::python {

namespace nb = nanobind;

namespace {

constexpr std::chrono::milliseconds kLook(50);  // between two looks for signals and progress

struct Job {
  std::atomic<bool> stopped = false;    // a tune ends with the best library so far
  std::atomic<bool> cancelled = false;  // the job ends without one
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::optional<Progress> progress;  // the latest that was not delivered
  std::exception_ptr failure;        // of the work

  // The first time, a tune may write what it has; compile() has nothing to write.
  void end() {
    if (stopped.exchange(true)) cancelled = true;
  }
  void run(const std::function<void()>& work) {
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    done = true;
    changed.notify_all();
  }
  // Waits without the GIL until the job has ended or it is time to look; whether it has ended.
  bool wait() {
    const nb::gil_scoped_release others_may_run;
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, kLook, [&] { return done; });
  }
  std::optional<Progress> take_progress() {
    const std::lock_guard lock(mutex);
    return std::exchange(progress, std::nullopt);
  }
};

struct RunningJobs {
  std::mutex mutex;
  std::set<Job*> jobs;
};
RunningJobs& running_jobs() {
  static RunningJobs* const all = new RunningJobs;  // never destroyed: jobs may outlast the module
  return *all;
}

class Registered {
 public:
  explicit Registered(Job& job) : job_(job) {
    const std::lock_guard lock(running_jobs().mutex);
    running_jobs().jobs.insert(&job_);
  }
  ~Registered() {
    const std::lock_guard lock(running_jobs().mutex);
    running_jobs().jobs.erase(&job_);
  }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

 private:
  Job& job_;
};

// Raises what a signal's handler raises, or what the caller's function does.
void look(Job& job, nb::handle on_progress) {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  if (std::optional<Progress> progress = job.take_progress(); progress && !on_progress.is_none())
    on_progress(std::move(*progress));
}

}  // namespace

void run_job(TuneOptions& options, nb::handle on_progress, const std::function<void()>& work) {
  Job job;
  options.compile.interrupted = &job.cancelled;
  options.interrupted = &job.stopped;
  options.on_progress = [&job](const TuneProgress& progress) {
    const std::lock_guard lock(job.mutex);
    job.progress.emplace(progress);
  };
  std::optional<nb::python_error> raised;  // the first exception counts
  {
    const Registered registered(job);
    std::thread thread([&] { job.run(work); });
    while (!job.wait()) {
      try {
        look(job, raised ? nb::handle(Py_None) : on_progress);
      } catch (nb::python_error& error) {
        job.end();
        if (!raised) raised.emplace(std::move(error));
      }
    }
    thread.join();
  }
  if (raised) throw std::move(*raised);
  if (job.failure) std::rethrow_exception(job.failure);
}

void end_all_jobs() {
  const nb::gil_scoped_release others_may_run;
  for (;;) {
    {
      const std::lock_guard lock(running_jobs().mutex);
      if (running_jobs().jobs.empty()) return;
      for (Job* job : running_jobs().jobs) job->cancelled = job->stopped = true;
    }
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace hone::python
