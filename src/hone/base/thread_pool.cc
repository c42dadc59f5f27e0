#include "hone/base/thread_pool.h"

#include <algorithm>
#include <atomic>

#include "hone/base/allocation.h"
#include "hone/base/assert.h"

namespace hone {
namespace {

// One parallel_for. Helpers that start after its end find no index left, so it is shared and
// outlives the call.
struct Loop {
  explicit Loop(int64_t count, const std::function<void(int64_t)>& function)
      : n(count), f(&function) {}

  void work() {
    int64_t finished = 0;
    for (int64_t i = next++; i < n; i = next++, ++finished) (*f)(i);
    if (finished == 0) return;
    const std::lock_guard<std::mutex> lock(mutex);
    done += finished;
    if (done == n) all_done.notify_all();
  }

  void wait() {
    std::unique_lock<std::mutex> lock(mutex);
    all_done.wait(lock, [this] { return done == n; });
  }

  const int64_t n;
  const std::function<void(int64_t)>* f;  // alive until done == n
  std::atomic<int64_t> next = 0;
  std::mutex mutex;
  std::condition_variable all_done;
  int64_t done = 0;
};

}  // namespace

ThreadPool::ThreadPool(int threads) : threads_(threads) {
  HONE_ASSERT(threads >= 1, "a pool has at least the calling thread");
  for (int i = 0; i < std::max(threads - 1, 1); ++i)
    workers_.push_back(start_thread([this] { run(); }));
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::parallel_for(int64_t n, const std::function<void(int64_t)>& f) {
  if (n <= 0) return;
  const auto loop = std::make_shared<Loop>(n, f);
  const int64_t helpers = std::min<int64_t>(threads_, n) - 1;
  for (int64_t i = 0; i < helpers; ++i) enqueue([loop] { loop->work(); });
  loop->work();
  loop->wait();
}

void ThreadPool::enqueue(std::function<void()> work) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(std::move(work));
  }
  wake_.notify_one();
}

void ThreadPool::run() {
  for (;;) {
    std::function<void()> work;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
  }
}

}  // namespace hone
