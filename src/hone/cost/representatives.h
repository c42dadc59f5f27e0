// cost/representatives.h - a few tasks that stand for many (Fasor, section 4.2): measured on a new
// device, they tell most about it. Tasks are alike as far as their features rise and fall together
// (Spearman's rank correlation); clusters are those of k-medoids.
#pragma once

#include <span>

#include "hone/cost/task_list.h"

namespace hone::cost {

// Of the ranks of the values, those of equal ones shared: -1 to 1; 0 if one of them does not vary.
[[nodiscard]] double spearman(std::span<const float> a, std::span<const float> b);

// The places of the `count` points whose sum of distances to all others, each to the nearest of
// them, is least as far as single swaps find it: PAM (Kaufman and Rousseeuw 1990), with the swaps
// of all medoids tried at once (Schubert and Rousseeuw 2019). `distances`: row-major, symmetric.
// The same input gives the same result; of equal ones the first is taken.
[[nodiscard]] std::vector<size_t> k_medoids(std::span<const float> distances, size_t points,
                                            size_t count);

// At most `count` of the data set's tasks, whatever their number of threads; those that stand for
// most first. They are compared by their task_features().
[[nodiscard]] std::vector<ListedTask> representatives(const Dataset& dataset, int count);

}  // namespace hone::cost
