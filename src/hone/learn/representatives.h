// learn/representatives.h - a few tasks that represent many (Fasor, section 4.2). Measured on a new
// device, they tell the most about it. The similarity of tasks is the rank correlation of their
// features (Spearman); clusters are those of k-medoids.
#pragma once

#include <span>

#include "hone/learn/task_list.h"

namespace hone::learn {

// Returns the indices of `count` points for which the sum over all points of the distance to the
// nearest of them is least, as far as single swaps find it: PAM (Kaufman and Rousseeuw 1990), with
// the swaps of all medoids tried at once (Schubert and Rousseeuw 2019). `distances` is row-major
// and symmetric. The result is deterministic; among equal ones the first is taken.
[[nodiscard]] std::vector<size_t> k_medoids(std::span<const float> distances, size_t points,
                                            size_t count);

// A task that may represent others. Its Dag must outlive the call.
struct Represented {
  uint64_t key = 0;
  std::string kernel_class;
  const compute::Dag* dag = nullptr;
};
// Returns at most `count` of distinct tasks, those with the largest clusters first. They are
// compared by their cost::task_features().
[[nodiscard]] std::vector<ListedTask> representatives(std::span<const Represented> tasks,
                                                      int count);
// Does the same for the data set's tasks, whatever their number of threads.
[[nodiscard]] std::vector<ListedTask> representatives(const Dataset& dataset, int count);

}  // namespace hone::learn
