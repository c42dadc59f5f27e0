// learn/task_list.h - a list of tasks as a file: tasks that represent the others, to be measured
// first on a new device and to train on, or to exclude when judging (docs/user/dataset.md).
#pragma once

#include <set>

#include "hone/learn/dataset.h"

namespace hone::learn {

struct ListedTask {
  uint64_t key = 0;
  std::string kernel_class;
  int cluster = 1;        // number of tasks that it represents, itself included
  double similarity = 1;  // mean rank correlation of their features with its own
};

struct TaskList {
  std::string device;  // device whose records the tasks came from: KEY or KEY/THREADS
  std::vector<std::string> excluded_models;  // networks whose tasks were left out
  std::vector<ListedTask> tasks;             // those with the largest clusters first
  [[nodiscard]] std::set<uint64_t> keys() const;
};

[[nodiscard]] std::string format(const TaskList& list);
// Parses a list. `name` is the file's, for messages.
[[nodiscard]] Result<TaskList> parse_task_list(std::string_view text, std::string_view name);

// Both return a part of a dataset: the tasks that are among `keys`, or those that are not.
[[nodiscard]] Dataset tasks_among(const Dataset& dataset, const std::set<uint64_t>& keys);
[[nodiscard]] Dataset tasks_except(const Dataset& dataset, const std::set<uint64_t>& keys);

}  // namespace hone::learn
