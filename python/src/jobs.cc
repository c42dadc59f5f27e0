#include "jobs.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

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
  bool asked = false;                // there are calls to serve
  std::optional<Progress> progress;  // the latest that was not delivered
  std::exception_ptr failure;        // of the work

  void end(AtTheEnd at_the_end) {
    const bool asked_before = stopped.exchange(true);
    if (asked_before || at_the_end == AtTheEnd::kWritesNothing) cancelled = true;
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
  // Waits without the GIL until the job has ended, it is time to look or there are calls to serve;
  // whether it has ended.
  bool wait(std::chrono::steady_clock::time_point look) {
    const nb::gil_scoped_release others_may_run;
    std::unique_lock lock(mutex);
    changed.wait_until(lock, look, [&] { return done || asked; });
    asked = false;
    return done;
  }
  void ask() {
    const std::lock_guard lock(mutex);
    asked = true;
    changed.notify_all();
  }
  std::optional<Progress> take_progress() {
    const std::lock_guard lock(mutex);
    return std::exchange(progress, std::nullopt);
  }
};

struct RunningJobs {
  std::mutex mutex;
  std::set<Job*> jobs;
  std::atomic<int> models = 0;
  std::atomic<bool> ending = false;
};
RunningJobs*& all_jobs() {
  static RunningJobs* all = new RunningJobs;  // never destroyed: jobs may outlast the module
  return all;
}
RunningJobs& running_jobs() { return *all_jobs(); }

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

RunningModel::RunningModel() {
  if (running_jobs().ending) raise_input_error("the interpreter is about to end");
  ++running_jobs().models;
}
RunningModel::~RunningModel() { --running_jobs().models; }

void run_job(TuneOptions& options, AtTheEnd at_the_end, nb::handle on_progress,
             const std::function<void()>& work, PythonCalls* calls) {
  if (running_jobs().ending) raise_input_error("the interpreter is about to end");
  Job job;
  options.compile.interrupted = &job.cancelled;
  options.interrupted = &job.stopped;
  options.on_progress = [&job](const TuneProgress& progress) {
    const std::lock_guard lock(job.mutex);
    job.progress.emplace(progress);
  };
  if (calls != nullptr) calls->open([&job] { job.ask(); });
  std::exception_ptr raised;  // the first exception counts
  const auto end = [&](const std::exception_ptr& exception) {
    job.end(at_the_end);
    if (calls != nullptr) calls->refuse();
    if (!raised) raised = exception;
  };
  const auto serve = [&] {
    if (calls == nullptr) return;
    calls->serve();
    if (const std::exception_ptr exception = calls->take_exception()) end(exception);
  };
  {
    const Registered registered(job);
    std::thread thread([&] { job.run(work); });
    auto next_look = std::chrono::steady_clock::now() + kLook;
    while (!job.wait(next_look)) {
      serve();
      if (std::chrono::steady_clock::now() < next_look) continue;
      try {
        look(job, raised ? nb::handle(Py_None) : on_progress);
      } catch (...) {  // the thread has to be waited for, whatever it is
        end(std::current_exception());
      }
      next_look = std::chrono::steady_clock::now() + kLook;
    }
    thread.join();
  }
  if (raised) std::rethrow_exception(raised);
  if (job.failure) std::rethrow_exception(job.failure);
}

void end_all_jobs() {
  running_jobs().ending = true;
  const nb::gil_scoped_release others_may_run;
  for (;;) {
    {
      const std::lock_guard lock(running_jobs().mutex);
      if (running_jobs().jobs.empty() && running_jobs().models == 0) return;
      for (Job* job : running_jobs().jobs) job->cancelled = job->stopped = true;
    }
    std::this_thread::sleep_for(kLook / 10);
  }
}

// The old list may be locked by a thread that does not exist here.
void forget_jobs() { all_jobs() = new RunningJobs; }

}  // namespace hone::python
