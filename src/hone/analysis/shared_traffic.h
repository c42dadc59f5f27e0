// analysis/shared_traffic.h - bytes moved into each cache by the stages of a root together. What
// several stages touch in one iteration of the loops around them is in the cache once and comes
// there once, where cpu_measure.h adds up the stages as if each ran alone.
//
// Source: Tuna (Wang et al. 2021), section III.A.2, algorithm 2 ("the union of data footprint of a
// single iteration"). There it is a union of sets; here the largest box that one access touches,
// as producers and consumers inside one loop touch the same tile.
#pragma once

#include <span>
#include <vector>

#include "hone/analysis/nest.h"
#include "hone/target/cpu.h"

namespace hone::analysis {

struct RootTraffic {
  int root = -1;              // stage
  std::vector<double> bytes;  // moved into each cache from the next level, on one core
};
// Returns one for each root of the nests, in their order.
[[nodiscard]] std::vector<RootTraffic> shared_traffic(std::span<const Nest> nests,
                                                      const target::Cpu& target, int threads);

}  // namespace hone::analysis
