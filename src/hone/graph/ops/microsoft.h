// graph/ops/microsoft.h - the order of dimensions of com.microsoft's operators whose channels stand
// last.
#pragma once

#include <algorithm>
#include <numeric>

#include "hone/graph/expand.h"

namespace hone::graph {

// Moves the channels of data of so many dimensions from the last place to the second, where ONNX's
// operators have them.
[[nodiscard]] inline ValueId channels_second(ExpandContext& c, ValueId x, int64_t rank) {
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin() + 1, order.end() - 1, order.end());
  return c.transpose(x, order);
}
// Moves them back.
[[nodiscard]] inline ValueId channels_last(ExpandContext& c, ValueId x, int64_t rank) {
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return c.transpose(x, order);
}

}  // namespace hone::graph
