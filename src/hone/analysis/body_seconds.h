// analysis/body_seconds.h - about how long the bodies of extern stages (sorts, gathers, trees) take
// on a CPU. Cost models say nothing of them; the number of threads for a kernel needs the order of
// magnitude.
#pragma once

#include "hone/compute/dag.h"
#include "hone/target/cpu.h"

namespace hone::analysis {

// Returns the seconds of all extern stages of a task on one thread: so many cycles for each
// operation of their statements. A loop whose length depends on data counts kUnknownTrips
// iterations (analysis/body_nests.h), what a condition on data guards half.
[[nodiscard]] double body_seconds(const compute::Dag& dag, const target::Cpu& cpu);

}  // namespace hone::analysis
