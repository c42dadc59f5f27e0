// schedule/block_selection.h - a body that selects the first elements of a row (top-k, sort), by
// the threads of a block of a GPU instead of one thread for each row.
//
// The bound, which is the key of the last element that is selected, is found by halving: in each
// step all threads count the elements of the row that reach the middle of what is left. The same
// halving over numbers of elements decides among those that are equal to the bound. What is
// selected then moves to shared memory, where a bitonic network sorts it (Batcher, "Sorting
// networks and their applications", 1968). A short row, or one of which most is selected, is sorted
// as a whole. No step depends on the data, so that all threads of a block meet at the same
// barriers.
#pragma once

#include <optional>

#include "hone/compute/dag.h"

namespace hone::schedule {

// Returns the stage with a body that a block of so many threads, a power of 2, runs for each point;
// nothing if its body selects nothing.
[[nodiscard]] std::optional<compute::Stage> block_selection(const compute::Stage& stage,
                                                            int64_t threads);

// Returns the bytes of shared memory that such a block needs; 0 if the body selects nothing.
[[nodiscard]] int64_t selection_bytes(const compute::Stage& stage, int64_t threads);
// Returns the length of the rows; 0 if the body selects nothing.
[[nodiscard]] int64_t selection_row(const compute::Stage& stage);

}  // namespace hone::schedule
