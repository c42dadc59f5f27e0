// db/store.h - a store as a whole: trials, choices inside networks, and what keeps both in order.
// Whoever uses a part asks for the interface of that part alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hone/db/choice_store.h"
#include "hone/db/trial_store.h"

namespace hone::db {

class StoreUpkeep {
 public:
  virtual ~StoreUpkeep() = default;
  // Deletes trials, choices that name them, and tasks that no trial is of any more, all or none,
  // and gives their room back.
  virtual Status remove(std::span<const int64_t> ids) = 0;
  // Checks the structure of everything stored, which may take long: what is wrong, in words.
  virtual Result<std::vector<std::string>> verify() = 0;
};

class Store : public TrialStore, public ChoiceStore, public StoreUpkeep {};

struct StoreOptions {
  bool read_only = false;      // never writes; works on a read-only folder
  bool create = true;          // the file, if there is none
  int busy_timeout_ms = 5000;  // how long to wait for another process
  int64_t max_bytes = 0;       // of the file; 0: no limit
};

}  // namespace hone::db
