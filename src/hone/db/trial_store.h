// db/trial_store.h - where trials are kept. What `add` has returned ok for survives a crash of this
// process. Safe for several processes at once; one object is for one thread at a time.
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

// This is what TrialStore::best() looks for.
struct BestQuery {
  uint64_t task = 0;
  std::string device;
  int threads = 1;
  std::string version;    // empty: any
  std::string algorithm;  // empty: any
  // Nothing that needs a less strict one.
  trial::Accuracy accuracy = trial::Accuracy::kDefault;
  int limit = 1;

  // True if the algorithm and the accuracy of the record are asked for.
  [[nodiscard]] bool takes(const trial::Record& record) const;
  // The accuracies of what it takes, the strictest and the least strict one as numbers; the first
  // is greater if there is none. All schedules of an algorithm have the same one.
  [[nodiscard]] std::pair<int64_t, int64_t> accuracies() const;
};

// TrialStore::query() looks for records that agree with every field that is set, oldest first.
struct Filter {
  std::optional<uint64_t> task;
  std::optional<std::string> kernel_class, device, version, model;
  std::optional<int> threads;
  std::optional<trial::Outcome> outcome;
  bool verified_only = false;
  bool failed_only = false;  // any outcome but ok
  // Only the fastest verified trial that the usual accuracy allows is looked at, of each task,
  // device and number of threads; it has to agree with the other fields, too.
  bool fastest_only = false;
  bool with_task_text = false;
  int64_t after_id = 0;       // resume: only records with a greater id
  int64_t limit = -1;         // -1: all
  bool newest_first = false;  // else oldest first, page by page by `after_id`
};

class TrialStore {
 public:
  virtual ~TrialStore() = default;
  // All or none of the batch; returns their ids.
  virtual Result<std::vector<int64_t>> add(std::span<const trial::Record> batch) = 0;
  // Verified trials only, fastest first.
  virtual Result<std::vector<trial::Record>> best(const BestQuery& query) = 0;
  virtual Result<std::vector<trial::Record>> query(const Filter& filter) = 0;
  // Tells what became of a stored trial when it was run again. kOk: its output was right. Otherwise
  // it is no best any more: `found` becomes its outcome, and `message` says why.
  virtual Status set_verified(int64_t id, trial::Outcome found, std::string_view message) = 0;
};

}  // namespace hone::db
