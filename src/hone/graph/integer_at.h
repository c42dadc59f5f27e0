// graph/integer_at.h - elements of constants as integers. Tensor::at returns a double, which does
// not have all integers of 64 bits: the largest, which stands for "to the end" in a Slice, becomes
// 2^63, which no int64_t is.
#pragma once

#include "hone/tensor/tensor.h"

namespace hone::graph {

// Returns an element of a tensor of numbers, rounded towards 0; those beyond the least or the
// largest int64_t are that, and so is what is no number the largest. Of u64, numbers above 2^53
// lose their last bits.
inline int64_t integer_at(const Tensor& tensor, int64_t element) {
  if (tensor.dtype() == DType::kI64) return tensor.as<int64_t>()[static_cast<size_t>(element)];
  const double number = tensor.at(element);
  if (number < -0x1p63) return INT64_MIN;
  return number < 0x1p63 ? static_cast<int64_t>(number) : INT64_MAX;
}

}  // namespace hone::graph
