// schedule/block_scan.h - a body that is a scan along a row (running sums), by the threads of a
// block of a GPU instead of one thread for each row.
//
// A block goes through the row in rounds. Each thread has neighbouring elements, which it sums up
// in registers; 16 threads make sums of what threads have before each thread, and each thread adds
// what comes before it to its own (Blelloch, "Prefix sums and their applications", 1990). So each
// element is read and written once.
#pragma once

#include <optional>

#include "hone/compute/dag.h"

namespace hone::schedule {

// Returns the stage with a body that a block of so many threads, a power of 2, runs for each point;
// nothing if its body is no scan with one result for each element, made of the sum alone.
[[nodiscard]] std::optional<compute::Stage> block_scan(const compute::Stage& stage,
                                                       int64_t threads);

// Returns the length of rows whose elements are neighbours in memory; 0 if the body is no such
// scan.
[[nodiscard]] int64_t scanned_row(const compute::Stage& stage);

}  // namespace hone::schedule
