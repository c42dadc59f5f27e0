// cost/dataset.h - measured schedules of a database, by task: what cost models are trained on and
// judged by.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "hone/compute/dag.h"
#include "hone/db/store.h"
#include "hone/space/space.h"

namespace hone::cost {

struct MeasuredSteps {
  schedule::Steps steps;
  double seconds;  // the median, if it was measured several times
};

// All trials of a task with one number of threads.
struct TaskTrials {
  uint64_t key = 0;
  int threads = 1;
  std::string kernel_class;
  std::set<std::string> models;  // in whose tuning it was measured
  std::shared_ptr<const compute::Dag> dag;
  std::vector<MeasuredSteps> trials;  // in the order first stored
};

struct Dataset {
  std::vector<TaskTrials> tasks;  // by key and threads
  int64_t left_out = 0;           // records that no schedule can be made of any more
  [[nodiscard]] int64_t size() const;
  [[nodiscard]] std::set<std::string> models() const;
};

// What ran on `device` and gave a time. Tasks of fewer than `min_trials` schedules are left out.
[[nodiscard]] Result<Dataset> load_dataset(db::Store& store, const std::string& device,
                                           int min_trials = 2);
// Without every task that one of the models has.
[[nodiscard]] Dataset without_models(const Dataset& dataset, const std::set<std::string>& models);

}  // namespace hone::cost
