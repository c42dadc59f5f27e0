// tools/hone/dataset_load.h - the training data of a database: all devices, this space version.
#pragma once

#include "hone/learn/data_split.h"

namespace hone::tool {

// One for each device that has usable records; warns of the other devices. An error if there is no
// usable one at all, which says what there is instead.
[[nodiscard]] Result<std::vector<learn::Dataset>> load_all_devices(const std::string& db);
// "1 record is left out: WHY", if there is any.
void warn_left_out(int64_t count, std::string_view what, std::string_view why);
// A line for each reason.
void warn_of_what_is_left_out(const learn::Dataset& dataset);
[[nodiscard]] Result<learn::DataSplit> read_split(const std::string& path);

}  // namespace hone::tool
