// backend/cpu/list_schedule.h - cycles of a block of machine code on a core that runs instructions
// out of order: each starts as soon as its operands are there and one of its ports is free.
//
// Source: Tuna (Wang et al. 2021), section III.A.3 (a list scheduler over a block instead of a
// simulation of all of a core). It assumes that all data is in L1 and branches are predicted.
#pragma once

#include <span>
#include <vector>

#include "hone/backend/cpu/core_model.h"

namespace hone::backend::cpu {

// A step is what one instruction needs of a core. Registers are numbers from 0.
struct CoreStep {
  Unit unit = Unit::kNone;  // what it needs beside its memory accesses
  bool loads = false, stores = false;
  bool wide = false;  // has vectors of 512 bits
  // Memory accesses wait for `addresses`, what is done with the values for `reads` as well.
  std::vector<size_t> addresses, reads;
  std::vector<size_t> writes;    // known when all is done
  std::vector<size_t> advances;  // addresses that a load or store moves on, known a cycle later
};

// Returns the cycles per iteration of a loop of these steps; 0 if there are none.
[[nodiscard]] double list_schedule(std::span<const CoreStep> loop, const CoreModel& core);

}  // namespace hone::backend::cpu
