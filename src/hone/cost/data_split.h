// cost/data_split.h - which measured schedules a model is trained on, chosen among (validation) and
// judged by (test), as a file: made once, used by every model, so that all are compared on the same
// data (docs/user/dataset.md).
#pragma once

#include <map>
#include <span>
#include <unordered_map>

#include "hone/cost/dataset.h"

namespace hone::cost {

enum class SplitBy : uint8_t {
  kWithin,  // schedules of each task; near duplicates on one side
  kTask,    // whole tasks
  kModel,   // all tasks that a held-out network has, also where others have them
  kDevice,  // all that was measured on a held-out device, or with a number of threads there
};
[[nodiscard]] Result<SplitBy> parse_split_by(std::string_view name);
[[nodiscard]] std::string_view split_by_name(SplitBy by);

enum class Part : uint8_t { kTrain, kValidation, kTest };

struct SplitOptions {
  SplitBy by = SplitBy::kTask;
  std::vector<std::string> held_out;  // networks, or devices as KEY or KEY/THREADS
  double fraction = 0.1;              // of tasks or schedules to be tested by
  double validation = 0.1;            // of the rest
  uint64_t seed = 1;
};

struct DataSplit {
  SplitOptions options;
  std::string space_version;       // of the schedules
  std::map<uint64_t, Part> tasks;  // but for kWithin
  // kWithin: by task, then hash of the steps.
  std::map<uint64_t, std::map<uint64_t, Part>> schedules;
};

// One dataset for each device. An error if nothing would be left to train on or to test by, or if a
// held-out name is unknown.
[[nodiscard]] Result<DataSplit> make_split(std::span<const Dataset> datasets,
                                           const SplitOptions& options,
                                           const std::string& space_version);

struct SplitData {
  Dataset train, validation, test;
  int64_t unknown = 0;  // schedules that were measured after the split was made: in no part
};
[[nodiscard]] SplitData apply_split(const Dataset& dataset, const DataSplit& split);

[[nodiscard]] std::string format(const DataSplit& split);
// `name` is the file's, for messages. Refuses a split of another space version.
[[nodiscard]] Result<DataSplit> parse_data_split(std::string_view text, std::string_view name,
                                                 const std::string& space_version);

// Groups of near duplicates among the schedules of a task: 0, 1, ... for each. Two are if their
// steps differ in one number by a quarter at most, or if models see the same features.
[[nodiscard]] std::vector<int> near_duplicates(std::span<const schedule::Steps> schedules,
                                               std::span<const std::vector<float>> features);
// Of all schedules of a task, with whatever devices and numbers of threads they were measured: what
// group each is in, by the hash of its steps. A group is called by the least hash in it.
[[nodiscard]] std::map<uint64_t, uint64_t> duplicate_groups(
    std::span<const TaskTrials* const> tasks);

}  // namespace hone::cost
