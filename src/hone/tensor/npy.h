// tensor/npy.h - NumPy's .npy and .npz files, in and out. All element types; bf16, which NumPy
// lacks, is written as the two-byte void that ml_dtypes makes of it. Reads C and Fortran order,
// little-endian; a file that is cut off, too long or foreign is an error, never a guess.
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

// The array of that name and type; an extent of -1 allows any. An error names the array and says
// what was found and what was expected.
[[nodiscard]] Result<Tensor> find_array(std::span<const NamedTensor> arrays, std::string_view name,
                                        DType dtype, const Shape& shape);

[[nodiscard]] Result<Tensor> parse_npy(std::string_view bytes);
[[nodiscard]] std::string format_npy(const Tensor& tensor);
[[nodiscard]] Result<std::vector<NamedTensor>> parse_npz(std::string_view bytes);
[[nodiscard]] Result<std::string> format_npz(std::span<const NamedTensor> tensors,
                                             bool compress = false);

// The same with files; errors name the file. Writing is atomic.
[[nodiscard]] Result<Tensor> read_npy(const std::string& path);
Status write_npy(const std::string& path, const Tensor& tensor);
[[nodiscard]] Result<std::vector<NamedTensor>> read_npz(const std::string& path);
Status write_npz(const std::string& path, std::span<const NamedTensor> tensors,
                 bool compress = false);

}  // namespace hone
