// learn/torch/batches.h - divides rows into batches, which are pieces of tasks in an order that
// depends on the seed and the epoch alone. It also measures how well scores order the rows of each
// task.
#pragma once

#include <cstdint>
#include <vector>

#include "hone/cost/net/torch_api.h"

namespace hone::learn::torch_module {

struct Batch {
  std::vector<int64_t> rows;         // rows of all groups, side by side
  std::vector<int64_t> group_sizes;  // at least two
};

// Makes batches, in which every row of a task with at least two rows occurs once.
[[nodiscard]] std::vector<Batch> make_batches(const HoneTorchRows& rows, int64_t batch,
                                              int64_t group, uint64_t seed, int epoch);

struct PairAccuracy {
  double all = 0, clear = 0;  // clear: over pairs that differ by at least `least_ratio`
};
// Returns the mean over the tasks that have a pair to order; a tie of scores counts a half.
[[nodiscard]] PairAccuracy pair_accuracy(const HoneTorchRows& rows,
                                         const std::vector<float>& scores, double least_ratio);

}  // namespace hone::learn::torch_module
