// base/thread_pool.h - a small pool of threads for the compiler's own work (generated kernels have
// another, in the artifact). Work must not throw. Calls of parallel_for may be nested: the caller
// always works too, so it never waits for a free thread. A task given to submit must not wait for
// another submitted one.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace hone {

class ThreadPool {
 public:
  // The parameter `threads` counts the caller of parallel_for: a pool of n starts n - 1 threads,
  // but at least one for submit.
  explicit ThreadPool(int threads);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();  // finishes all submitted tasks

  [[nodiscard]] int threads() const { return threads_; }

  // Calls f(i) once for each i in [0, n), in any order and on any thread; returns when all are
  // done.
  void parallel_for(int64_t n, const std::function<void(int64_t)>& f);

  template <typename F>
  [[nodiscard]] auto submit(F f) {
    auto task = std::make_shared<std::packaged_task<std::invoke_result_t<F>()>>(std::move(f));
    auto future = task->get_future();
    enqueue([task] { (*task)(); });
    return future;
  }

 private:
  void enqueue(std::function<void()> work);
  void run();

  int threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace hone
