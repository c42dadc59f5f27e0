// python_calls.h - calls of Python's functions by the threads of a job: the thread that called the
// job makes them, so that signals, thread-local settings and debuggers see an ordinary call.
#pragma once

#include <hone/status.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace hone::python {

class PythonCalls {
 public:
  // Makes a call and returns when it has ended; called by any thread of the job, without the GIL or
  // with it. It is an error if the call raises, or if one has raised before: then none is made.
  [[nodiscard]] Status run(const std::function<void()>& call);

  // The rest is for run_job(). `wake` is called by the job's threads when there is something to
  // serve; this thread is the one that serves.
  void open(std::function<void()> wake);
  // Makes the calls that wait. The caller has the GIL.
  void serve();
  // Refuses all further calls.
  void refuse();
  // Returns the first exception of a call, once.
  [[nodiscard]] std::exception_ptr take_exception();

 private:
  struct Request {
    const std::function<void()>* call;
    bool done = false, ok = false;
  };
  // Makes one call with the GIL; whether it did not raise.
  [[nodiscard]] bool make(const std::function<void()>& call);

  std::mutex mutex_;
  std::condition_variable served_;
  std::deque<Request*> waiting_;
  std::function<void()> wake_;
  std::thread::id caller_;
  bool refused_ = false;
  std::exception_ptr raised_;
};

// Returns the seconds that threads of jobs have waited for their calls so far, in all of this
// process: those of the functions, and those for getting there and back.
[[nodiscard]] double call_seconds();

}  // namespace hone::python
