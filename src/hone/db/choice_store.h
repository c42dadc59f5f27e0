// db/choice_store.h - stores which schedules a network uses instead of those that are the fastest
// alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hone/base/status.h"
#include "hone/trial/record.h"

namespace hone::db {

// A choice names two trials of a task by their ids: the fastest schedule alone, and the fastest one
// inside a network.
struct Choice {
  // Equal if the best one alone is the fastest inside the network, too.
  int64_t best = 0, chosen = 0;
};
// The network uses this record instead of the schedule `best`.
struct Chosen {
  std::string best;      // steps of the schedule
  trial::Record record;  // a verified record
};

class ChoiceStore {
 public:
  virtual ~ChoiceStore() = default;
  // Replaces the earlier choices for these schedules; all or none are stored.
  virtual Status choose(uint64_t network, std::span<const Choice> choices) = 0;
  virtual Result<std::vector<Chosen>> chosen(uint64_t network) = 0;
};

}  // namespace hone::db
