// compute/bytes_moved.h - a lower bound of the memory traffic of a Dag.
#pragma once

#include "hone/compute/dag.h"

namespace hone::compute {

// Returns the bytes that every schedule reads from inputs and constants and writes to outputs,
// where each used byte counts once. A stage with a body is counted as reading at most what it
// loads. A schedule may store constants in fewer bytes; `constants` is the fraction of their bytes
// that is read.
[[nodiscard]] double bytes_moved(const Dag& dag, double constants = 1);

}  // namespace hone::compute
