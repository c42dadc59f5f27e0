// trial/bounds.h - the degrees to which memory and the core itself limit a program (Fasor's
// memory-bound and core-bound scores).
#pragma once

#include <string>

namespace hone::trial {

struct BoundScores {
  double memory = 0, core = 0;
};

// Shares of issue slots, by hardware counters: those in which the cores could have begun an
// operation but did not, because data was missing or for any other reason in the core. Their sum is
// at most 1.
struct CountedBounds {
  BoundScores scores;
  std::string source;  // name of the counters, as in CounterPlan::name
};

}  // namespace hone::trial
