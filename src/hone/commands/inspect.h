// inspect.h - counts the tasks of a model; hone/inspect.h shows everything else about it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "hone/base/status.h"
#include "hone/inspect.h"

namespace hone {

// The number of occurrences of each task of a model, by the task's key. Predictions are made only
// to decide whether two tasks become one.
struct TaskCounts {
  std::string model;  // name of the model
  std::map<uint64_t, int> tasks;
  std::set<std::string> files;  // files that the model was read from
};
[[nodiscard]] Result<TaskCounts> count_tasks(const std::string& model,
                                             const CompileOptions& options = {});

}  // namespace hone
