#include "python_calls.h"

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <utility>

namespace hone::python {

namespace {

std::atomic<int64_t> all_nanoseconds = 0;  // of calls by threads of jobs

Status ended() { return {Code::kCancelled, "a function of the caller's ended the job"}; }

}  // namespace

bool PythonCalls::make(const std::function<void()>& call) {
  {
    const std::lock_guard lock(mutex_);
    if (refused_) return false;
  }
  try {
    call();
    return true;
  } catch (...) {  // it goes on in the thread that called the job
    const std::lock_guard lock(mutex_);
    refused_ = true;
    if (!raised_) raised_ = std::current_exception();
    return false;
  }
}

Status PythonCalls::run(const std::function<void()>& call) {
  if (std::this_thread::get_id() == caller_) {  // a call asks Hone, which calls again
    const nanobind::gil_scoped_acquire gil;
    return make(call) ? Status() : ended();
  }
  const auto begin = std::chrono::steady_clock::now();
  Request request{.call = &call};
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(&request);
  }
  wake_();
  std::unique_lock lock(mutex_);
  served_.wait(lock, [&] { return request.done; });
  all_nanoseconds += std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
  return request.ok ? Status() : ended();
}

void PythonCalls::open(std::function<void()> wake) {
  caller_ = std::this_thread::get_id();
  wake_ = std::move(wake);
}

void PythonCalls::serve() {
  for (;;) {
    Request* request = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty()) return;
      request = waiting_.front();
      waiting_.pop_front();
    }
    const bool ok = make(*request->call);
    const std::lock_guard lock(mutex_);
    request->ok = ok;
    request->done = true;
    served_.notify_all();
  }
}

double call_seconds() { return static_cast<double>(all_nanoseconds) * 1e-9; }

void PythonCalls::refuse() {
  const std::lock_guard lock(mutex_);
  refused_ = true;
}

std::exception_ptr PythonCalls::take_exception() {
  const std::lock_guard lock(mutex_);
  return std::exchange(raised_, nullptr);
}

}  // namespace hone::python
