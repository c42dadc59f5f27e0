// learn/task_list.h - a list of tasks as a file: tasks that represent the others, to be measured
// first on a new device and to train on, or to exclude when judging (docs/user/dataset.md).
#pragma once

#include <set>

#include "hone/dataset.h"
#include "hone/learn/dataset.h"

namespace hone::learn {

[[nodiscard]] std::string format(const TaskList& list);
// Parses a list. `name` is the file's, for messages.
[[nodiscard]] Result<TaskList> parse_task_list(std::string_view text, std::string_view name);

// Both return a part of a dataset: the tasks that are among `keys`, or those that are not.
[[nodiscard]] Dataset tasks_among(const Dataset& dataset, const std::set<uint64_t>& keys);
[[nodiscard]] Dataset tasks_except(const Dataset& dataset, const std::set<uint64_t>& keys);

}  // namespace hone::learn
