#include "hone/search/batch_maker.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "hone/base/clock.h"

namespace hone::search {
namespace {

constexpr int kFirstBatch = 4;
// Batches prepared at a time: with more, the choice of tasks would know too little of the last.
constexpr int kMostPrepared = 4;

}  // namespace

int BatchMaker::handed_out() const {
  return std::accumulate(handed_out_of_.begin(), handed_out_of_.end(), 0);
}

int BatchMaker::batch_size(int task, int handed_out, int most) {
  int size = std::min({limits_.batch, tuner(task).max_batch(), most});
  // A first look at every task comes before a second one at any.
  if (tuner(task).trials() == 0 && tuners_.size() > 4) size = std::min(size, kFirstBatch);
  if (limits_.max_trials > 0) size = std::min(size, limits_.max_trials - handed_out);
  if (limits_.max_task_trials > 0)
    size = std::min(size, limits_.max_task_trials - handed_out_of_[static_cast<size_t>(task)]);
  return std::max(size, 1);
}

// All trials of the task that the limits allow are handed out, or will be if all get code.
bool BatchMaker::has_enough(int task) const {
  return limits_.max_task_trials > 0 &&
         handed_out_of_[static_cast<size_t>(task)] >= limits_.max_task_trials;
}

// Tasks for the next batches, one for each thread that makes candidates.
std::vector<TaskBatch> BatchMaker::choose(int most, int64_t wanted) {
  std::vector<TaskBatch> group;
  int handed_out = this->handed_out();
  const int64_t enough = handed_out + wanted;
  const int threads = pool_.threads();
  while (std::ssize(group) < (builders_ != nullptr ? threads : std::min(threads, kMostPrepared)) &&
         handed_out < enough) {
    if (limits_.max_trials > 0 && handed_out >= limits_.max_trials) break;
    const int task = scheduler_.next();
    const bool again = std::any_of(group.begin(), group.end(),
                                   [&](const TaskBatch& batch) { return batch.task == task; });
    if (task < 0 || again || has_enough(task)) break;
    scheduler_.start(task);
    group.push_back({.task = task, .size = batch_size(task, handed_out, most)});
    handed_out += group.back().size;
  }
  return group;
}

// A searcher is one thread's work, so batches of several tasks are proposed at the same time.
void BatchMaker::propose(std::vector<TaskBatch>& group) {
  const InPhase choosing(phases_, Phase::kChoosing);
  pool_.parallel_for(std::ssize(group), [&](int64_t i) {
    TaskBatch& batch = group[static_cast<size_t>(i)];
    Result<std::vector<Candidate>> proposed = tuner(batch.task).propose(batch.size);
    batch.proposed = proposed.status();
    if (proposed.ok()) batch.candidates = std::move(proposed).value();
    batch.exhausted = !proposed.ok() || tuner(batch.task).exhausted();
  });
}

void BatchMaker::build(int task, Candidate& candidate) {
  compile_time_.begin();
  tuner(task).build(candidate);
  compile_time_.end();
}

void BatchMaker::build(std::vector<TaskBatch>& group) {
  const InPhase compiling(phases_, Phase::kCompiling);
  std::vector<std::pair<int, Candidate*>> all;
  for (TaskBatch& batch : group) {
    for (Candidate& candidate : batch.candidates) {
      all.emplace_back(batch.task, &candidate);
      if (builders_ == nullptr) continue;
      batch.builds.push_back(builders_->submit([this, task = batch.task, &candidate] {
        if (!given_up_) build(task, candidate);
      }));
    }
  }
  if (builders_ != nullptr) return;
  pool_.parallel_for(std::ssize(all), [&](int64_t i) {
    const auto& [task, candidate] = all[static_cast<size_t>(i)];
    build(task, *candidate);
  });
}

void BatchMaker::complete(TaskBatch& batch) {
  if (std::exchange(batch.completed, true)) return;
  const InPhase compiling(phases_, Phase::kCompiling);
  for (std::future<void>& build : batch.builds) build.wait();
  int& of_task = handed_out_of_[static_cast<size_t>(batch.task)];
  of_task -= static_cast<int>(std::ssize(batch.candidates));
  tuner(batch.task).drop_known(batch.candidates);
  tuner(batch.task).filter(batch.candidates);
  of_task +=
      static_cast<int>(std::count_if(batch.candidates.begin(), batch.candidates.end(),
                                     [](const Candidate& candidate) { return candidate.runs(); }));
  if (has_enough(batch.task)) scheduler_.finish(batch.task);
}

void BatchMaker::make_ready(std::span<const int> tasks) {
  for (const int task : tasks) {
    (void)builders_->submit([this, task] {
      if (!given_up_) tuner(task).make_ready();
    });
  }
}

void BatchMaker::give_up(std::deque<TaskBatch>& batches) {
  given_up_ = true;
  for (TaskBatch& batch : batches) {
    for (std::future<void>& build : batch.builds) build.wait();
  }
}

std::vector<TaskBatch> BatchMaker::make(int most, int64_t wanted) {
  std::vector<TaskBatch> group = choose(most, wanted);
  propose(group);
  build(group);
  for (TaskBatch& batch : group) {
    handed_out_of_[static_cast<size_t>(batch.task)] +=
        static_cast<int>(std::ssize(batch.candidates));
    if (batch.exhausted) scheduler_.finish(batch.task);
    if (builders_ == nullptr) complete(batch);
  }
  return group;
}

void CompileTime::begin() {
  const std::lock_guard lock(mutex_);
  if (running_++ == 0) begin_ = real_clock().now_seconds();
}

void CompileTime::end() {
  const std::lock_guard lock(mutex_);
  ++compiled_;
  if (--running_ == 0) seconds_ += real_clock().now_seconds() - begin_;
}

int CompileTime::compiled() const {
  const std::lock_guard lock(mutex_);
  return compiled_;
}

double CompileTime::seconds() const {
  const std::lock_guard lock(mutex_);
  return seconds_;
}

}  // namespace hone::search
