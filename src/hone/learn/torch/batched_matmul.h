// learn/torch/batched_matmul.h - products of many small matrices with gradients, as attention needs
// them. Without MKL, libtorch calls BLAS for each of them, which takes longer than the product.
#pragma once

#include <ATen/ATen.h>

namespace hone::learn::torch_module {

// Multiplies [rows, heads, m, k] and [rows, heads, k, n] with any strides; other shapes go to
// at::matmul.
[[nodiscard]] at::Tensor batched_matmul(const at::Tensor& a, const at::Tensor& b);

}  // namespace hone::learn::torch_module
