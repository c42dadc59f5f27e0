// tensor/half_tensor.h - arrays of 16-bit floats as arrays of float32, and back.
#pragma once

#include <optional>

#include "hone/tensor/tensor.h"

namespace hone {

// Returns whether the type is f16 or bf16.
[[nodiscard]] constexpr bool is_half(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16;
}

// Returns the same numbers in float32, which holds all of them. The tensor must be of a half type.
[[nodiscard]] Tensor widened(const Tensor& half);

// Returns the numbers of a tensor of float32 in a half type, each rounded to the nearest, or to the
// one with an even last bit of two. With `exact` it is nullopt if one of them would change.
[[nodiscard]] std::optional<Tensor> narrowed(const Tensor& floats, DType half, bool exact);

}  // namespace hone
