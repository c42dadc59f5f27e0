// npy.h - reads and writes NumPy's .npy and .npz files with all element types. NumPy has no bf16,
// so that is written as the two-byte void that ml_dtypes makes of it. C and Fortran order are read,
// little-endian only. A file that is cut off, too long or in another format is Code::kInvalid, one
// that is not there kNotFound; the message names the file. Writing is atomic.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hone/export.h"
#include "hone/status.h"
#include "hone/tensor.h"

namespace hone {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

[[nodiscard]] HONE_API Result<Tensor> read_npy(const std::string& path);
HONE_API Status write_npy(const std::string& path, const Tensor& tensor);
[[nodiscard]] HONE_API Result<std::vector<NamedTensor>> read_npz(const std::string& path);
HONE_API Status write_npz(const std::string& path, std::span<const NamedTensor> tensors,
                          bool compress = false);

}  // namespace hone
