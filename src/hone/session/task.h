// session/task.h - one distinct computation of a model: its Dag, key and class, and the space of
// its schedules, which is created when it is first needed.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "hone/compute/dag.h"
#include "hone/space/space.h"

namespace hone {

class Task {
 public:
  // `target` must outlive the task.
  Task(compute::Dag dag, uint64_t key, const target::Target& target);

  [[nodiscard]] const compute::Dag& dag() const { return dag_; }
  [[nodiscard]] uint64_t key() const { return key_; }  // compute::task_key
  [[nodiscard]] const std::string& kernel_class() const { return kernel_class_; }
  // Returns the FLOPs of its operators as they are written.
  [[nodiscard]] double flops() const { return flops_; }
  // Returns the bytes that it reads and writes, each counted once.
  [[nodiscard]] double bytes() const { return bytes_; }
  // Returns the space of all schedules that an accuracy allows. The first caller creates it;
  // callers on other threads wait meanwhile.
  [[nodiscard]] const Result<space::Space>& space(trial::Accuracy accuracy) const;
  // Returns the FLOPs of the algorithm that needs the fewest; flops() if the task has no space.
  [[nodiscard]] double least_flops(trial::Accuracy accuracy) const;
  // Returns the type of elements that schedules multiply by matrix instructions, as in
  // TaskSummary::matrix.
  [[nodiscard]] std::string matrix_type(trial::Accuracy accuracy) const;

 private:
  compute::Dag dag_;
  uint64_t key_;
  std::string kernel_class_;
  double flops_, bytes_;
  const target::Target& target_;
  mutable std::array<std::once_flag, trial::kNumAccuracies> made_;
  mutable std::array<std::optional<Result<space::Space>>, trial::kNumAccuracies> spaces_;
};
using TaskPtr = std::shared_ptr<const Task>;

// The tasks of a session. Equal tasks are one object, whichever model or partition they belong to.
class TaskTable {
 public:
  explicit TaskTable(const target::Target& target) : target_(target) {}
  TaskTable(const TaskTable&) = delete;
  TaskTable& operator=(const TaskTable&) = delete;

  // Returns the task of a Dag. `key` is compute::task_key(dag). Dags with the same key are one task
  // if a kernel of one can run the other: the key does not depend on the order of operands, nor on
  // the zeros that are known to be around them.
  [[nodiscard]] TaskPtr get(const compute::Dag& dag, uint64_t key);

 private:
  const target::Target& target_;
  std::mutex mutex_;
  std::map<uint64_t, std::vector<TaskPtr>> tasks_;  // by key
};

}  // namespace hone
