// search/batch_maker.h - makes the batches that are measured next: the scheduler picks tasks, their
// tuners propose candidates and make machine code of them, several tasks at a time. The code may be
// made by threads of its own, while other batches are proposed and measured. No more candidates
// with machine code are handed out than the limits allow, but for a batch of one.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "hone/base/thread_pool.h"
#include "hone/search/task_tuner.h"
#include "hone/task_scheduler.h"

namespace hone::search {

struct TaskBatch {
  int task = -1;
  int size = 0;  // candidates wanted
  // The batch's share of the time in which nothing was measured because candidates were being made.
  double prepare_seconds = 0;
  Status proposed = ok_status();
  bool exhausted = false;  // there is nothing left to propose
  bool completed = false;  // its candidates have machine code, or the reason why not
  std::vector<Candidate> candidates;
  std::vector<std::future<void>> builds;  // those of the candidates that may still run
};

// Counts the candidates that were compiled, and the seconds in which at least one was.
class CompileTime {
 public:
  void begin();
  void end();
  [[nodiscard]] int compiled() const;
  [[nodiscard]] double seconds() const;

 private:
  mutable std::mutex mutex_;
  int running_ = 0, compiled_ = 0;
  double begin_ = 0, seconds_ = 0;
};

struct BatchLimits {
  int batch = 8;
  int max_trials = 0;       // 0: no limit
  int max_task_trials = 0;  // limit per task; 0: no limit
};

class BatchMaker {
 public:
  // All arguments must outlive it; `phases` is of the thread that calls it. The scheduler numbers
  // the tuners in their order. Without `builders`, make() returns completed batches.
  BatchMaker(std::span<const std::unique_ptr<TaskTuner>> tuners, TaskScheduler& scheduler,
             ThreadPool& pool, ThreadPool* builders, const BatchLimits& limits,
             PhaseClock* phases = nullptr)
      : phases_(phases),
        tuners_(tuners),
        scheduler_(scheduler),
        pool_(pool),
        builders_(builders),
        limits_(limits),
        handed_out_of_(tuners.size(), 0) {}

  // Makes batches of different tasks, some of which may have no candidates. `most` limits the
  // candidates in a batch to those that can be measured in the time that is left; once there are
  // `wanted` candidates, no more batches are made. A task that has nothing more to hand out is
  // finished for the scheduler. Without anything to do it returns no batch.
  [[nodiscard]] std::vector<TaskBatch> make(int most, int64_t wanted);
  // Lets the builders make the tasks' operands ahead, in this order.
  void make_ready(std::span<const int> tasks);
  // Waits until the code of a batch is made, and drops candidates whose code was measured before or
  // is not worth measuring.
  // Batches are completed in the order in which they were made.
  void complete(TaskBatch& batch);
  // Gives up batches that make() returned: what was not begun is not compiled any more.
  void give_up(std::deque<TaskBatch>& batches);
  [[nodiscard]] const CompileTime& compile_time() const { return compile_time_; }
  // Returns whether all trials that the limits allow are handed out.
  [[nodiscard]] bool spent() const {
    return limits_.max_trials > 0 && handed_out() >= limits_.max_trials;
  }

 private:
  [[nodiscard]] TaskTuner& tuner(int task) { return *tuners_[static_cast<size_t>(task)]; }
  [[nodiscard]] int handed_out() const;
  [[nodiscard]] bool has_enough(int task) const;
  [[nodiscard]] int batch_size(int task, int handed_out, int most);
  [[nodiscard]] std::vector<TaskBatch> choose(int most, int64_t wanted);
  void propose(std::vector<TaskBatch>& group);
  void build(std::vector<TaskBatch>& group);
  void build(int task, Candidate& candidate);

  PhaseClock* phases_;  // may be null
  std::span<const std::unique_ptr<TaskTuner>> tuners_;
  TaskScheduler& scheduler_;
  ThreadPool& pool_;
  ThreadPool* builders_;
  BatchLimits limits_;
  // Per task: candidates with code, measured or about to be, and those that may get code.
  std::vector<int> handed_out_of_;
  CompileTime compile_time_;
  std::atomic<bool> given_up_ = false;
};

}  // namespace hone::search
