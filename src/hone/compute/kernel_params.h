// compute/kernel_params.h - what tasks of one key must have in common to share a kernel: its
// arguments are the params, in their order, and neither the order nor a param that nothing touches
// is a part of the key.
#pragma once

#include "hone/compute/dag.h"

namespace hone::compute {

// Removes the params that no stage touches: the branch of a selection that a constant condition
// never takes. Returns the indices that the others had.
std::vector<size_t> remove_dead_params(Dag& dag);

// Where the params of a kernel's task are among those of a task of the same key: per param of
// `kernel`, the index of the param of `dag` that is used in the same places. Both are without dead
// params.
[[nodiscard]] std::vector<size_t> order_like(const Dag& dag, const Dag& kernel);

// The elements of `list` in the order of their indices in `order`.
template <typename T>
[[nodiscard]] std::vector<T> in_order(const std::vector<T>& list,
                                      const std::vector<size_t>& order) {
  std::vector<T> result;
  for (const size_t i : order) result.push_back(list[i]);
  return result;
}

// Whether a kernel that was made for one task serves the call of another one with the same key:
// as many params, none dead, each of the same role, type, shape and known zeros, and used in the
// same places. An error says what differs.
[[nodiscard]] Status check_same_params(const Dag& kernel, const Dag& call);

}  // namespace hone::compute
