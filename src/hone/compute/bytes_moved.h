// compute/bytes_moved.h - the least traffic of a Dag with memory.
#pragma once

#include "hone/compute/dag.h"

namespace hone::compute {

// Bytes that any schedule reads from inputs and constants and writes to outputs: each that is used,
// once. What a stage with a body reads is at most what it loads. Constants may be kept smaller than
// they are: `constants` is the share that is read of them.
[[nodiscard]] double bytes_moved(const Dag& dag, double constants = 1);

}  // namespace hone::compute
