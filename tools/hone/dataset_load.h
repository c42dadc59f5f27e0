// tools/hone/dataset_load.h - the training data of a database: all devices, this space version.
#pragma once

#include "hone/cost/data_split.h"

namespace hone::tool {

// One for each device that has records. An error if there is no usable one at all, which says what
// there is instead.
[[nodiscard]] Result<std::vector<cost::Dataset>> load_all_devices(const std::string& db);
// A line for each reason.
void warn_of_what_is_left_out(const cost::Dataset& dataset);
[[nodiscard]] Result<cost::DataSplit> read_split(const std::string& path);

}  // namespace hone::tool
