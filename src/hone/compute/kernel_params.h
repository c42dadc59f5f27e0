// compute/kernel_params.h - compares the params of tasks with equal keys, to find out whether they
// can share a kernel. A kernel's arguments are the params in their order, and the key contains
// neither that order nor a param that nothing touches.
#pragma once

#include "hone/compute/dag.h"

namespace hone::compute {

// Removes the params that no stage touches (the branch of a selection that a constant condition
// never takes). Returns the indices that the remaining ones had.
std::vector<size_t> remove_dead_params(Dag& dag);

// Matches the params of two tasks with the same key: returns, per param of `kernel`, the index of
// the param of `dag` that is used in the same places. Neither may have dead params.
[[nodiscard]] std::vector<size_t> order_like(const Dag& dag, const Dag& kernel);

// Returns the elements of `list` at the indices in `order`.
template <typename T>
[[nodiscard]] std::vector<T> in_order(const std::vector<T>& list,
                                      const std::vector<size_t>& order) {
  std::vector<T> result;
  for (const size_t i : order) result.push_back(list[i]);
  return result;
}

// Checks that a kernel that was made for one task can run another one with the same key: both have
// as many params, none dead, each of the same role, type, shape and known zeros, and used in the
// same places. An error says what differs.
[[nodiscard]] Status check_same_params(const Dag& kernel, const Dag& call);

}  // namespace hone::compute
