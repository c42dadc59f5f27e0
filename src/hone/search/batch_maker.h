// search/batch_maker.h - makes the batches that are measured next: the scheduler picks tasks, their
// tuners propose candidates and make machine code of them, several tasks at a time. No more
// candidates with machine code are handed out than the limits allow, but for a batch of one.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "hone/base/thread_pool.h"
#include "hone/search/task_scheduler.h"
#include "hone/search/task_tuner.h"

namespace hone::search {

struct TaskBatch {
  int task = -1;
  int size = 0;  // candidates wanted
  // The batch's share of the time in which nothing was measured because candidates were being made.
  double prepare_seconds = 0;
  Status proposed = ok_status();
  bool exhausted = false;  // there is nothing left to propose
  std::vector<Candidate> candidates;
};

struct BatchLimits {
  int batch = 8;
  int max_trials = 0;       // 0: no limit
  int max_task_trials = 0;  // limit per task; 0: no limit
};

class BatchMaker {
 public:
  // All arguments must outlive it. The scheduler numbers the tuners in their order.
  BatchMaker(std::span<const std::unique_ptr<TaskTuner>> tuners, TaskScheduler& scheduler,
             ThreadPool& pool, const BatchLimits& limits)
      : tuners_(tuners),
        scheduler_(scheduler),
        pool_(pool),
        limits_(limits),
        handed_out_of_(tuners.size(), 0) {}

  // Makes batches of different tasks, some of which may have no candidates. `most` limits the
  // candidates in a batch to those that can be measured in the time that is left. A task that has
  // nothing more to hand out is finished for the scheduler. Without anything to do it returns no
  // batch.
  [[nodiscard]] std::vector<TaskBatch> make(int most);
  // Returns whether all trials that the limits allow are handed out.
  [[nodiscard]] bool spent() const {
    return limits_.max_trials > 0 && handed_out() >= limits_.max_trials;
  }

 private:
  [[nodiscard]] TaskTuner& tuner(int task) { return *tuners_[static_cast<size_t>(task)]; }
  [[nodiscard]] int handed_out() const;
  [[nodiscard]] int batch_size(int task, int handed_out, int most);
  [[nodiscard]] std::vector<TaskBatch> choose(int most);
  void fill(std::vector<TaskBatch>& group);

  std::span<const std::unique_ptr<TaskTuner>> tuners_;
  TaskScheduler& scheduler_;
  ThreadPool& pool_;
  BatchLimits limits_;
  std::vector<int> handed_out_of_;  // per task: candidates with code, measured or about to be
};

}  // namespace hone::search
