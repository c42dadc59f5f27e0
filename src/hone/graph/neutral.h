// graph/neutral.h - the number that changes no maximum, no minimum or no sum.
#pragma once

#include <limits>

#include "hone/tensor/tensor.h"

namespace hone::graph {

// Returns what changes no maximum (sign -1), no minimum (1) or no sum (0) of elements of a type.
// Integers are given as infinity, too: they saturate (Tensor::set).
[[nodiscard]] inline double neutral_of(DType dtype, int sign) {
  if (sign == 0) return 0;
  if (dtype == DType::kBool) return sign < 0 ? 0 : 1;
  return sign * std::numeric_limits<double>::infinity();
}

}  // namespace hone::graph
