// tensor/npy.h - reads and writes NumPy's .npy and .npz files with all element types. NumPy has no
// bf16, so that is written as the two-byte void that ml_dtypes makes of it. C and Fortran order are
// read, little-endian only. A file that is cut off, too long or in another format is an error.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hone/base/status.h"
#include "hone/tensor/tensor.h"

namespace hone {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

// Finds the array with that name, type and shape. An extent of -1 in `shape` allows any. An error
// names the array and says what was found and what was expected.
[[nodiscard]] Result<Tensor> find_array(std::span<const NamedTensor> arrays, std::string_view name,
                                        DType dtype, const Shape& shape);

[[nodiscard]] Result<Tensor> parse_npy(std::string_view bytes);
[[nodiscard]] std::string format_npy(const Tensor& tensor);
[[nodiscard]] Result<std::vector<NamedTensor>> parse_npz(std::string_view bytes);
[[nodiscard]] Result<std::string> format_npz(std::span<const NamedTensor> tensors,
                                             bool compress = false);

// These read and write files. An error names the file, and writing is atomic.
[[nodiscard]] Result<Tensor> read_npy(const std::string& path);
Status write_npy(const std::string& path, const Tensor& tensor);
[[nodiscard]] Result<std::vector<NamedTensor>> read_npz(const std::string& path);
Status write_npz(const std::string& path, std::span<const NamedTensor> tensors,
                 bool compress = false);

}  // namespace hone
