// graph/all_finite.h - tells of weights whether their products with zeros are zeros.
#pragma once

#include <algorithm>
#include <cmath>

#include "hone/tensor/tensor.h"

namespace hone::graph {

// Returns whether no element is infinite or no number.
[[nodiscard]] inline bool all_finite(const Tensor& tensor) {
  if (tensor.dtype() == DType::kF32)
    return std::ranges::all_of(tensor.as<float>(), [](float x) { return std::isfinite(x); });
  for (int64_t i = 0; is_float(tensor.dtype()) && i < tensor.size(); ++i) {
    if (!std::isfinite(tensor.at(i))) return false;
  }
  return true;
}

}  // namespace hone::graph
