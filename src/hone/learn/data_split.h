// learn/data_split.h - divides measured schedules into those for training, for choosing among
// models (validation) and for judging (test). The split is a file that is made once and used by
// every model, so that all are compared on the same data (docs/user/dataset.md).
#pragma once

#include <map>
#include <span>
#include <unordered_map>

#include "hone/dataset.h"
#include "hone/learn/dataset.h"

namespace hone::learn {

[[nodiscard]] std::string_view split_by_name(SplitBy by);

enum class Part : uint8_t { kTrain, kValidation, kTest };

struct DataSplit {
  SplitOptions options;
  std::string space_version;       // space version of the schedules
  std::map<uint64_t, Part> tasks;  // parts of tasks; empty for kWithin
  // For kWithin: parts by task, then by the hash of the steps.
  std::map<uint64_t, std::map<uint64_t, Part>> schedules;
};

// Makes a split of one dataset for each device. It is an error if nothing would be left for
// training or for testing, or if a held-out name is unknown.
[[nodiscard]] Result<DataSplit> make_split(std::span<const Dataset> datasets,
                                           const SplitOptions& options,
                                           const std::string& space_version);

struct SplitData {
  Dataset train, validation, test;
  // Schedules that are in no part, as they were measured after the split was made.
  int64_t unknown = 0;
};
[[nodiscard]] SplitData apply_split(const Dataset& dataset, const DataSplit& split);

[[nodiscard]] std::string format(const DataSplit& split);
// Parses a split. `name` is the file's, for messages. A split of another space version is refused.
[[nodiscard]] Result<DataSplit> parse_data_split(std::string_view text, std::string_view name,
                                                 const std::string& space_version);

// Groups near duplicates among the schedules of a task: returns a group number 0, 1, ... for each.
// Two schedules are near duplicates if their steps differ in one number by at most a quarter, or if
// models see the same features.
[[nodiscard]] std::vector<int> near_duplicates(std::span<const schedule::Steps> schedules,
                                               std::span<const std::vector<float>> features);
// Groups all schedules of a task, with all devices and numbers of threads. Returns the group of
// each by the hash of its steps; a group is named by the least hash in it.
[[nodiscard]] std::map<uint64_t, uint64_t> duplicate_groups(
    std::span<const TaskTrials* const> tasks);

}  // namespace hone::learn
