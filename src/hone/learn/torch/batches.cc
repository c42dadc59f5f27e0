#include "hone/learn/torch/batches.h"

#include <algorithm>

#include "hone/base/rng.h"

namespace hone::learn::torch_module {

std::vector<Batch> make_batches(const HoneTorchRows& rows, int64_t batch, int64_t group,
                                uint64_t seed, int epoch) {
  Rng rng(hash_combine(seed, static_cast<uint64_t>(epoch)));
  std::vector<std::vector<int64_t>> pieces;
  for (int64_t g = 0; g < rows.num_groups; ++g) {
    std::vector<int64_t> all;
    for (int64_t row = rows.group_begin[g]; row < rows.group_begin[g + 1]; ++row)
      all.push_back(row);
    const auto size = static_cast<int64_t>(all.size());
    if (size < 2) continue;
    rng.shuffle(all);
    // Pieces of the same size, but for one row.
    const int64_t count = std::max<int64_t>(1, std::min((size + group - 1) / group, size / 2));
    for (int64_t i = 0; i < count; ++i)
      pieces.emplace_back(all.begin() + size * i / count, all.begin() + size * (i + 1) / count);
  }
  rng.shuffle(pieces);
  std::vector<Batch> batches;
  for (const std::vector<int64_t>& piece : pieces) {
    const auto size = static_cast<int64_t>(piece.size());
    if (batches.empty() || static_cast<int64_t>(batches.back().rows.size()) + size > batch)
      batches.emplace_back();
    batches.back().rows.insert(batches.back().rows.end(), piece.begin(), piece.end());
    batches.back().group_sizes.push_back(size);
  }
  return batches;
}

PairAccuracy pair_accuracy(const HoneTorchRows& rows, const std::vector<float>& scores,
                           double least_ratio) {
  struct Count {
    double right = 0, pairs = 0;
    int tasks = 0;
    double sum = 0;  // sum of the tasks' shares
    void end_task() {
      if (pairs > 0) sum += right / pairs, ++tasks;
      right = pairs = 0;
    }
    [[nodiscard]] double mean() const { return tasks > 0 ? sum / tasks : 0; }
  } all, clear;
  for (int64_t g = 0; g < rows.num_groups; ++g) {
    for (int64_t i = rows.group_begin[g]; i < rows.group_begin[g + 1]; ++i) {
      for (int64_t j = rows.group_begin[g]; j < i; ++j) {
        const float fast = std::max(rows.speed[i], rows.speed[j]);
        const float slow = std::min(rows.speed[i], rows.speed[j]);
        if (fast == slow) continue;
        const float difference =
            rows.speed[i] == fast ? scores[i] - scores[j] : scores[j] - scores[i];
        const double right = difference > 0 ? 1 : difference == 0 ? 0.5 : 0;
        all.right += right, ++all.pairs;
        if (fast >= least_ratio * slow) clear.right += right, ++clear.pairs;
      }
    }
    all.end_task(), clear.end_task();
  }
  return {all.mean(), clear.mean()};
}

}  // namespace hone::learn::torch_module
