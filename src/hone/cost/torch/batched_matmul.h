// cost/torch/batched_matmul.h - products of many small matrices, as attention needs them, with
// gradients. libtorch without MKL calls BLAS for each of them, which takes longer than the product.
#pragma once

#include <ATen/ATen.h>

namespace hone::cost::torch_module {

// Of [rows, heads, m, k] and [rows, heads, k, n], whatever their strides; of other shapes
// at::matmul.
[[nodiscard]] at::Tensor batched_matmul(const at::Tensor& a, const at::Tensor& b);

}  // namespace hone::cost::torch_module
