// trial/bounds.h - how much memory and the core itself hold a program up (Fasor's memory-bound
// and core-bound scores).
#pragma once

#include <string>

namespace hone::trial {

struct BoundScores {
  double memory = 0, core = 0;
};

// By hardware counters: shares of the slots in which the cores could have begun an operation and
// did not, for want of data and for want of anything else in the core. They sum to 1 at most.
struct CountedBounds {
  BoundScores scores;
  std::string source;  // CounterPlan::name
};

}  // namespace hone::trial
