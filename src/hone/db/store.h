// db/store.h - where trials are kept. What `add` has returned ok for survives a crash of this
// process. Safe for several processes at once; one object is for one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hone/base/status.h"
#include "hone/db/record.h"
#include "hone/space/space.h"

namespace hone::db {

// What `best` looks for.
struct BestQuery {
  uint64_t task = 0;
  std::string device;
  int threads = 1;
  std::string version;    // empty: any
  std::string algorithm;  // empty: any
  // Nothing that needs a less strict one.
  space::Accuracy accuracy = space::Accuracy::kDefault;
  int limit = 1;

  // Whether its algorithm and accuracy are asked for.
  [[nodiscard]] bool takes(const Record& record) const;
  // The accuracies of what it takes, the strictest and the least strict one as numbers; the first
  // is greater if there is none. All schedules of an algorithm have the same one.
  [[nodiscard]] std::pair<int64_t, int64_t> accuracies() const;
};

// What `query` looks for: records that agree with every field that is set, oldest first.
struct Filter {
  std::optional<uint64_t> task;
  std::optional<std::string> kernel_class, device, version, model;
  std::optional<int> threads;
  std::optional<measure::Outcome> outcome;
  bool verified_only = false;
  bool failed_only = false;  // any outcome but ok
  // Of each task, device and number of threads, only the fastest verified trial that the usual
  // accuracy allows is looked at (and then has to agree with the other fields).
  bool fastest_only = false;
  bool with_task_text = false;
  int64_t after_id = 0;       // resume: only records with a greater id
  int64_t limit = -1;         // -1: all
  bool newest_first = false;  // else oldest first, page by page by `after_id`
};

// Of a task, by the ids of two trials: its fastest schedule alone, and the fastest one inside a
// network.
struct Choice {
  int64_t best = 0, chosen = 0;  // equal: it is the fastest there, too
};
// What the network has instead of the schedule `best`.
struct Chosen {
  std::string best;  // steps
  Record record;     // verified
};

class Store {
 public:
  virtual ~Store() = default;
  // All or none of the batch; returns their ids.
  virtual Result<std::vector<int64_t>> add(std::span<const Record> batch) = 0;
  // Verified trials only, fastest first.
  virtual Result<std::vector<Record>> best(const BestQuery& query) = 0;
  virtual Result<std::vector<Record>> query(const Filter& filter) = 0;
  // What became of a stored trial when it was run again. kOk: its output was right. Else it is no
  // best any more: `found` becomes its outcome, and `message` says why.
  virtual Status set_verified(int64_t id, measure::Outcome found, std::string_view message) = 0;
  // Replaces what was chosen before instead of any of these schedules; all or none.
  virtual Status choose(uint64_t network, std::span<const Choice> choices) = 0;
  virtual Result<std::vector<Chosen>> chosen(uint64_t network) = 0;
  // Deletes trials, choices that name them, and tasks that no trial is of any more, all or none,
  // and gives their room back.
  virtual Status remove(std::span<const int64_t> ids) = 0;
  // Checks the structure of everything stored, which may take long: what is wrong, in words.
  virtual Result<std::vector<std::string>> verify() = 0;
};

struct StoreOptions {
  bool read_only = false;      // never writes; works on a read-only folder
  bool create = true;          // the file, if there is none
  int busy_timeout_ms = 5000;  // how long to wait for another process
  int64_t max_bytes = 0;       // of the file; 0: no limit
};

}  // namespace hone::db
