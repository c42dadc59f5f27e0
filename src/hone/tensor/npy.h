// tensor/npy.h - .npy and .npz as bytes, and the arrays of a file by name; files themselves are
// read and written by hone/npy.h.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hone/base/status.h"
#include "hone/npy.h"
#include "hone/tensor/tensor.h"

namespace hone {

// Finds the array with that name, type and shape. An extent of -1 in `shape` allows any. An error
// names the array and says what was found and what was expected.
[[nodiscard]] Result<Tensor> find_array(std::span<const NamedTensor> arrays, std::string_view name,
                                        DType dtype, const Shape& shape);

[[nodiscard]] Result<Tensor> parse_npy(std::string_view bytes);
[[nodiscard]] std::string format_npy(const Tensor& tensor);
[[nodiscard]] Result<std::vector<NamedTensor>> parse_npz(std::string_view bytes);
[[nodiscard]] Result<std::string> format_npz(std::span<const NamedTensor> tensors,
                                             bool compress = false);

}  // namespace hone
