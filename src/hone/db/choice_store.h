// db/choice_store.h - where it is kept which schedules a network has instead of those that are the
// fastest alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hone/base/status.h"
#include "hone/trial/record.h"

namespace hone::db {

// A choice names two trials of a task by their ids: its fastest schedule alone, and the fastest one
// inside a network.
struct Choice {
  int64_t best = 0, chosen = 0;  // equal: it is the fastest there, too
};
// The network has this record instead of the schedule `best`.
struct Chosen {
  std::string best;      // steps
  trial::Record record;  // verified
};

class ChoiceStore {
 public:
  virtual ~ChoiceStore() = default;
  // Replaces what was chosen before instead of any of these schedules; all or none.
  virtual Status choose(uint64_t network, std::span<const Choice> choices) = 0;
  virtual Result<std::vector<Chosen>> chosen(uint64_t network) = 0;
};

}  // namespace hone::db
