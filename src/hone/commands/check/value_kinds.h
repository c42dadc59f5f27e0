// commands/check/value_kinds.h - how results are compared, by their element types.
#pragma once

#include "hone/tensor/dtype.h"
#include "hone/tensor/small_types.h"

namespace hone {

// Returns whether values are numbers that were rounded: floats of any width.
[[nodiscard]] inline bool is_real(DType dtype) { return is_float(dtype) || is_small_float(dtype); }

// Returns how far two results may be apart: `tolerance` for reals, relative to the largest one; one
// step for integers of 8 bits and fewer, to which a real may have been rounded; nothing for others.
[[nodiscard]] inline double allowed_difference(DType dtype, double tolerance) {
  if (is_real(dtype)) return tolerance;
  const bool is_byte = dtype == DType::kU8 || dtype == DType::kI8;
  return is_byte || small_integer_bits(dtype) > 0 ? 1 : 0;
}

}  // namespace hone
