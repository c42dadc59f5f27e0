// cost/dataset.h - measured schedules of a database, by task: what cost models are trained on and
// judged by.
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

namespace hone::cost {

// Times that differ by less are in an order that the next measurement may change: what learns from
// pairs of schedules leaves such pairs out.
inline constexpr double kReliableRatio = 1.04;
// Whoever judges wants to be surer: the pairs of "clear pair accuracy" differ by more than this.
inline constexpr double kClearRatio = 1.05;
// Of several records of a schedule, those so many times off their median are outliers.
inline constexpr double kOutlierRatio = 1.5;

struct MeasuredSteps {
  schedule::Steps steps;
  double seconds;  // the median, if it was measured several times, without outliers
  // By hardware counters: the mean of the records that have them.
  std::optional<trial::BoundScores> counted = std::nullopt;
};

// All trials of a task with one number of threads.
struct TaskTrials {
  uint64_t key = 0;
  int threads = 1;
  std::string kernel_class;
  // Networks that have it, also those in whose tuning it was measured with other threads or on
  // another device.
  std::set<std::string> models;
  std::shared_ptr<const compute::Dag> dag;
  std::vector<MeasuredSteps> trials;  // in the order first stored
};

struct Dataset {
  std::string device;             // target::device_key
  std::vector<TaskTrials> tasks;  // by key and threads
  int64_t left_out = 0;           // schedules that no code can be made of any more
  int64_t outliers = 0;           // records left out because others of the schedule disagree
  int64_t bad_times = 0;          // ... because their time is no positive number
  int64_t small_tasks = 0;        // left out: they have fewer schedules than were asked for
  std::map<std::string, int64_t> other_versions;  // records left out, by their space version
  [[nodiscard]] int64_t size() const;
  [[nodiscard]] std::set<std::string> models() const;
  [[nodiscard]] std::set<uint64_t> keys() const;  // of its tasks
  // Of those that one of the networks has, with any number of threads.
  [[nodiscard]] std::set<uint64_t> keys_of(const std::set<std::string>& networks) const;
};

// What all records of a store say together, whatever their device, version and outcome: it takes a
// pass over the store, which can serve the datasets of several devices.
struct StoreContents {
  std::map<uint64_t, std::set<std::string>> networks;  // by task: those that have it
  std::set<std::string> devices, versions;
  int64_t records = 0;
};
[[nodiscard]] Result<StoreContents> read_contents(db::TrialStore& store);
// What ran on `device`, with any number of threads or `threads`, and gave a time. Tasks of fewer
// than `min_trials` schedules are left out, and records of another space version than `version`, if
// that is not empty. `contents`: of this store, which say what tasks networks have; null: they are
// read.
[[nodiscard]] Result<Dataset> load_dataset(db::TrialStore& store, const std::string& device,
                                           int min_trials = 2, const std::string& version = {},
                                           int threads = 0,
                                           const StoreContents* contents = nullptr);
// Adds another part of the same data: other tasks, or other schedules of the same ones.
void append(Dataset& dataset, const Dataset& more);
// Without every task that one of the networks has.
[[nodiscard]] Dataset without_models(const Dataset& dataset, const std::set<std::string>& models);
// Leaves `count` tasks in what models are trained on, each on all devices and with all numbers of
// threads. Which ones depends on their keys and the seed alone, so that those of a smaller count
// are among those of a larger one. An error if there are fewer.
[[nodiscard]] Status keep_tasks(std::span<Dataset* const> parts, int count, uint64_t seed);

}  // namespace hone::cost
