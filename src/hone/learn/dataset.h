// learn/dataset.h - the measured schedules of a database by task, on which cost models are trained
// and judged.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "hone/compute/dag.h"
#include "hone/db/trial_store.h"
#include "hone/space/space.h"
#include "hone/trial/bounds.h"

namespace hone::learn {

// Judging requires a larger difference: the pairs of "clear pair accuracy" differ by more than this
// factor.
inline constexpr double kClearRatio = 1.05;
// If several records of a schedule exist, those that differ from their median by this factor are
// outliers.
inline constexpr double kOutlierRatio = 1.5;

struct MeasuredSteps {
  schedule::Steps steps;
  double seconds;  // median without outliers, if it was measured several times
  // Scores by hardware counters: the mean of the records that have them.
  std::optional<trial::BoundScores> counted = std::nullopt;
};

// All trials of a task with one number of threads.
struct TaskTrials {
  uint64_t key = 0;
  int threads = 1;
  std::string kernel_class;
  // Networks that have the task, also those in whose tuning it was measured with other threads or
  // on another device.
  std::set<std::string> models;
  std::shared_ptr<const compute::Dag> dag;
  std::vector<MeasuredSteps> trials;  // in the order in which they were first stored
};

struct Dataset {
  std::string device;             // as target::device_key returns it
  std::vector<TaskTrials> tasks;  // ordered by key and threads
  int64_t left_out = 0;           // schedules that cannot be compiled any more
  int64_t outliers = 0;     // records that were left out because others of the schedule disagree
  int64_t bad_times = 0;    // records that were left out because their time is no positive number
  int64_t small_tasks = 0;  // tasks that were left out because they have too few schedules
  // Records that were left out, by their space version.
  std::map<std::string, int64_t> other_versions;
  [[nodiscard]] int64_t size() const;
  [[nodiscard]] std::set<std::string> models() const;
  [[nodiscard]] std::set<uint64_t> keys() const;  // keys of the tasks
  // Returns the keys of tasks that one of the networks has, with any number of threads.
  [[nodiscard]] std::set<uint64_t> keys_of(const std::set<std::string>& networks) const;
};

// Facts about all records of a store, whatever their device, version and outcome. Collecting them
// takes a pass over the store, which can serve the datasets of several devices.
struct StoreContents {
  std::map<uint64_t, std::set<std::string>> networks;  // networks by task
  std::set<std::string> devices, versions;
  int64_t records = 0;
};
[[nodiscard]] Result<StoreContents> read_contents(db::TrialStore& store);
// Loads the trials that ran on `device`, with any number of threads or with `threads`, and gave a
// time. Tasks of fewer than `min_trials` schedules are left out, and records of another space
// version than `version`, if that is not empty. `contents` are those of this store, which tell the
// tasks of networks; if null, they are read.
[[nodiscard]] Result<Dataset> load_dataset(db::TrialStore& store, const std::string& device,
                                           int min_trials = 2, const std::string& version = {},
                                           int threads = 0,
                                           const StoreContents* contents = nullptr);
// Adds another part of the same data: other tasks, or other schedules of the same ones.
void append(Dataset& dataset, const Dataset& more);
// Returns the dataset without the tasks that one of the networks has.
[[nodiscard]] Dataset without_models(const Dataset& dataset, const std::set<std::string>& models);
// Keeps `count` tasks of the training data, each on all devices and with all numbers of threads.
// The choice depends on their keys and the seed alone, so that the tasks of a smaller count are
// among those of a larger one. It is an error if there are fewer.
[[nodiscard]] Status keep_tasks(std::span<Dataset* const> parts, int count, uint64_t seed);

}  // namespace hone::learn
