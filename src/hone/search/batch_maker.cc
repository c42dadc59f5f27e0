#include "hone/search/batch_maker.h"

#include <algorithm>
#include <numeric>
#include <utility>

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

// Tasks for the next batches, one for each thread that makes candidates.
std::vector<TaskBatch> BatchMaker::choose(int most) {
  std::vector<TaskBatch> group;
  int handed_out = this->handed_out();
  while (std::ssize(group) < std::min(pool_.threads(), kMostPrepared)) {
    if (limits_.max_trials > 0 && handed_out >= limits_.max_trials) break;
    const int task = scheduler_.next();
    const bool again = std::any_of(group.begin(), group.end(),
                                   [&](const TaskBatch& batch) { return batch.task == task; });
    if (task < 0 || again) break;
    scheduler_.start(task);
    group.push_back({.task = task, .size = batch_size(task, handed_out, most)});
    handed_out += group.back().size;
  }
  return group;
}

// A searcher is one thread's work, so batches of several tasks are proposed at the same time.
void BatchMaker::fill(std::vector<TaskBatch>& group) {
  pool_.parallel_for(std::ssize(group), [&](int64_t i) {
    TaskBatch& batch = group[static_cast<size_t>(i)];
    Result<std::vector<Candidate>> proposed = tuner(batch.task).propose(batch.size);
    batch.proposed = proposed.status();
    if (proposed.ok()) batch.candidates = std::move(proposed).value();
    batch.exhausted = !proposed.ok() || tuner(batch.task).exhausted();
  });
  std::vector<std::pair<TaskTuner*, Candidate*>> all;
  for (TaskBatch& batch : group) {
    for (Candidate& candidate : batch.candidates) all.emplace_back(&tuner(batch.task), &candidate);
  }
  pool_.parallel_for(std::ssize(all), [&](int64_t i) {
    const auto& [task, candidate] = all[static_cast<size_t>(i)];
    task->build(*candidate);
  });
  for (TaskBatch& batch : group) tuner(batch.task).drop_known(batch.candidates);
}

std::vector<TaskBatch> BatchMaker::make(int most) {
  std::vector<TaskBatch> group = choose(most);
  fill(group);
  for (const TaskBatch& batch : group) {
    int& of_task = handed_out_of_[static_cast<size_t>(batch.task)];
    of_task += static_cast<int>(
        std::count_if(batch.candidates.begin(), batch.candidates.end(),
                      [](const Candidate& candidate) { return candidate.runs(); }));
    const bool enough = limits_.max_task_trials > 0 && of_task >= limits_.max_task_trials;
    if (batch.exhausted || enough) scheduler_.finish(batch.task);
  }
  return group;
}

}  // namespace hone::search
