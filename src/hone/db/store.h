// db/store.h - a complete store: trials, choices inside networks, and maintenance of both. Code
// that needs only a part takes the interface of that part.
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
  // Deletes trials, the choices that name them, and tasks that have no trials left, all or none,
  // and gives their space back to the file system.
  virtual Status remove(std::span<const int64_t> ids) = 0;
  // Checks the structure of everything stored, which may take long. Returns the problems in words.
  virtual Result<std::vector<std::string>> verify() = 0;
};

class Store : public TrialStore, public ChoiceStore, public StoreUpkeep {};

struct StoreOptions {
  bool read_only = false;      // never writes; works on a read-only folder
  bool create = true;          // creates the file if there is none
  int busy_timeout_ms = 5000;  // time to wait for another process
  int64_t max_bytes = 0;       // limit of the file's size; 0 means none
};

}  // namespace hone::db
