// tools/hone/dataset_arrays.h - a data set as arrays, what `dataset export` writes as an .npz and
// `dataset import` reads (docs/user/dataset.md): features and times for other programs, a row for
// each schedule on a device with a number of threads, and the records that they come from.
#pragma once

#include <span>
#include <vector>

#include "hone/learn/dataset.h"
#include "hone/tensor/npy.h"
#include "hone/trial/record.h"

namespace hone::tool {

[[nodiscard]] Result<std::vector<NamedTensor>> dataset_arrays(
    std::span<const learn::Dataset> datasets, std::span<const trial::Record> records);

// The records of them. Strict: all arrays that dataset_arrays() gives must be there and agree, and
// no other; the versions of format, features and space must be this program's.
[[nodiscard]] Result<std::vector<trial::Record>> dataset_records(
    std::span<const NamedTensor> arrays);

}  // namespace hone::tool
