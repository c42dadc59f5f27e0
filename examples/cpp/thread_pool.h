// A small pool of threads, as a program may have one: it runs the tasks of one caller at a time.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

class ThreadPool {
 public:
  using Task = void (*)(void* context, int i);

  explicit ThreadPool(int num_threads) {
    for (int i = 1; i < num_threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  [[nodiscard]] int num_threads() const { return static_cast<int>(threads_.size()) + 1; }

  // What a model calls: hone_model_parallel_for.
  static void parallel_for(void* pool, int count, Task task, void* context) {
    static_cast<ThreadPool*>(pool)->run(count, task, context);
  }

 private:
  void run(int count, Task task, void* context) {
    std::unique_lock lock(mutex_);
    task_ = task;
    context_ = context;
    next_ = 0;
    count_ = count;
    unfinished_ = count;
    changed_.notify_all();
    take_tasks(lock);
    changed_.wait(lock, [this] { return unfinished_ == 0; });
  }
  void work() {
    std::unique_lock lock(mutex_);
    while (!stop_) {
      take_tasks(lock);
      changed_.wait(lock, [this] { return stop_ || next_ < count_; });
    }
  }
  // The lock is held, but not while a task runs.
  void take_tasks(std::unique_lock<std::mutex>& lock) {
    while (next_ < count_) {
      const int i = next_++;
      lock.unlock();
      task_(context_, i);
      lock.lock();
      if (--unfinished_ == 0) changed_.notify_all();
    }
  }

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Task task_ = nullptr;
  void* context_ = nullptr;
  int next_ = 0;
  int count_ = 0;
  int unfinished_ = 0;
  bool stop_ = false;
};
