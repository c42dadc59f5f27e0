// cost/torch/batches.h - which rows make a batch: pieces of tasks, in an order that the seed and
// the epoch decide alone. And how well scores order the rows of each task.
#pragma once

#include <cstdint>
#include <vector>

#include "hone/cost/torch/api.h"

namespace hone::cost::torch_module {

struct Batch {
  std::vector<int64_t> rows;         // of all groups, side by side
  std::vector<int64_t> group_sizes;  // two at least
};

// Every row of a task of two rows and more is in one batch.
[[nodiscard]] std::vector<Batch> make_batches(const HoneTorchRows& rows, int64_t batch,
                                              int64_t group, uint64_t seed, int epoch);

struct PairAccuracy {
  double all = 0, clear = 0;  // clear: of pairs that differ by `least_ratio` and more
};
// Mean over the tasks that have a pair to order; a tie of scores counts a half.
[[nodiscard]] PairAccuracy pair_accuracy(const HoneTorchRows& rows,
                                         const std::vector<float>& scores, double least_ratio);

}  // namespace hone::cost::torch_module
