// graph/decided_sizes.h - numbers of elements that data decide (extents.h), by the places where a
// run has them. Kernels that read one of these places need not compute elements beyond it.
#pragma once

#include <cstdint>
#include <vector>

#include "hone/graph/graph.h"

namespace hone::graph {

// An element of a buffer of integers (i64), by its number in memory.
struct DecidedPlace {
  int buffer = -1;  // index of Graph::buffers
  int64_t element = 0;
  bool operator==(const DecidedPlace&) const = default;
};

// A number of 0 to `most`. Each of the places has it from the time on when it was written.
struct DecidedSize {
  int64_t most = 0;
  std::vector<DecidedPlace> places;
};

// Returns the numbers with which a graph with storage compares indices, or up to which it copies
// outputs, in the order in which its nodes read them. What loops compute inside is not looked at.
[[nodiscard]] std::vector<DecidedSize> find_decided_sizes(const Graph& graph);

}  // namespace hone::graph
