// commands/training/dataset_arrays.h - a data set as the arrays of an .npz (docs/user/dataset.md):
// features and times for other programs, a row for each schedule on a device with a number of
// threads, and the records that they come from.
#pragma once

#include <span>
#include <vector>

#include "hone/learn/dataset.h"
#include "hone/tensor/npy.h"
#include "hone/trial/record.h"

namespace hone {

[[nodiscard]] Result<std::vector<NamedTensor>> dataset_arrays(
    std::span<const learn::Dataset> datasets, std::span<const trial::Record> records);

// Returns the records of such arrays. All arrays that dataset_arrays() returns must be there and
// agree, and no other; the versions of format, features and space must be this program's.
[[nodiscard]] Result<std::vector<trial::Record>> dataset_records(
    std::span<const NamedTensor> arrays);

}  // namespace hone
