// output_difference.h - computes how much a tensor differs from the expected one: element by
// element, and as a set, where rounding decides the order of the elements (internal).
#pragma once

#include "hone/tensor/tensor.h"

namespace hone {

struct Difference {
  // The largest difference, relative to the largest finite magnitude. It is infinite if one element
  // is not finite and the other is not the same, or if the shapes differ. Differences of integers
  // are absolute, and count only if they are not allowed; a difference of 1 is allowed for those of
  // 8 bits.
  double error = 0;
  double share = 0;  // share of the elements that differ by more than the tolerance
  int64_t elements = 0;
  bool same_shape = true;
};
[[nodiscard]] Difference difference(const Tensor& found, const Tensor& expected, double tolerance);

// Returns the share of rows that have no partner within the tolerance in the other tensor. Tensors
// with few columns, such as boxes, are compared by rows, all others by single elements.
[[nodiscard]] double set_difference(const Tensor& found, const Tensor& expected, double tolerance);

}  // namespace hone
