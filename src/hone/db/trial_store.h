// db/trial_store.h - stores trials. Once `add` has returned ok, its records survive a crash of this
// process. Several processes may use one store at once; one object is for one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hone/base/status.h"
#include "hone/trial/record.h"

namespace hone::db {

// TrialStore::best() looks for trials that match this.
struct BestQuery {
  uint64_t task = 0;
  std::string device;
  int threads = 1;
  std::string version;    // any if empty
  std::string algorithm;  // any if empty
  // Excludes trials that need a less strict accuracy.
  trial::Accuracy accuracy = trial::Accuracy::kDefault;
  int limit = 1;

  // Returns whether the record's algorithm and accuracy match.
  [[nodiscard]] bool takes(const trial::Record& record) const;
  // Returns the accuracies of matching trials, the strictest and the least strict one as numbers;
  // the first is greater if there are none. All schedules of an algorithm have the same one.
  [[nodiscard]] std::pair<int64_t, int64_t> accuracies() const;
};

// TrialStore::query() looks for records that match every field that is set, oldest first.
struct Filter {
  std::optional<uint64_t> task;
  std::optional<std::string> kernel_class, device, version, model;
  std::optional<int> threads;
  std::optional<trial::Outcome> outcome;
  bool verified_only = false;
  bool failed_only = false;  // any outcome but ok
  // Considers, for each task, device and number of threads, only the fastest verified trial that
  // the default accuracy allows; it must match the other fields, too.
  bool fastest_only = false;
  bool with_task_text = false;
  // Which records match by the part of the task that they computed (Record::part).
  enum class Parts : uint8_t { kWhole, kParts, kAll } parts = Parts::kWhole;
  int64_t after_id = 0;       // only records with a greater id, to resume
  int64_t limit = -1;         // -1 for all
  bool newest_first = false;  // else oldest first, page by page by `after_id`
};

class TrialStore {
 public:
  virtual ~TrialStore() = default;
  // Adds all or none of the batch and returns their ids.
  virtual Result<std::vector<int64_t>> add(std::span<const trial::Record> batch) = 0;
  // Returns verified trials only, fastest first.
  virtual Result<std::vector<trial::Record>> best(const BestQuery& query) = 0;
  virtual Result<std::vector<trial::Record>> query(const Filter& filter) = 0;
  // Stores what was found when a stored trial was run again. With kOk its output was right.
  // Otherwise the trial is no longer a best: `found` becomes its outcome, and `message` says why.
  virtual Status set_verified(int64_t id, trial::Outcome found, std::string_view message) = 0;
};

}  // namespace hone::db
