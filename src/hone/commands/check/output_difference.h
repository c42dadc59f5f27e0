// output_difference.h - how far a tensor is from what it should be: element by element, and as a
// set, where rounding decides in which order elements come (internal to the facade).
#pragma once

#include "hone/tensor/tensor.h"

namespace hone {

struct Difference {
  // The largest, relative to the largest finite magnitude; infinite where one is not finite and the
  // other is not the same, or if the shapes differ. Of integers: 0 or what is beyond 1 step of 8
  // bits.
  double error = 0;
  double share = 0;  // of the elements, beyond the tolerance
  int64_t elements = 0;
  bool same_shape = true;
};
[[nodiscard]] Difference difference(const Tensor& found, const Tensor& expected, double tolerance);

// The share of the rows of either (elements, but for matrices of few columns, as boxes are) that
// have no partner among the other's within the tolerance.
[[nodiscard]] double set_difference(const Tensor& found, const Tensor& expected, double tolerance);

}  // namespace hone
