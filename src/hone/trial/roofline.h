// trial/roofline.h - computes the least time of a kernel from the measured limits of a machine
// (hone/device.h, measure_roofline.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hone/base/status.h"
#include "hone/device.h"

namespace hone::trial {

using hone::Bound;
using hone::ForkJoin;
using hone::Rate;
using hone::Roofline;
using hone::RooflineLevel;

// Returns ok, or why these cannot be the figures of a machine: all rates must be positive and
// finite, and memory must be last.
[[nodiscard]] Status check(const Roofline& roofline);

// Returns the level that holds a working set of this many bytes, which the threads, one per core,
// share evenly.
[[nodiscard]] const RooflineLevel& level_of(const Roofline& roofline, double working_set,
                                            int threads);

// The least seconds for `flops` operations on `bytes` that are read or written, if they are in the
// level that holds a working set of their size. It is the greater of the time to compute and the
// time to move. `matrix` is as in hone::least_time().
[[nodiscard]] Bound bound(double flops, double bytes, double working_set, const Roofline& roofline,
                          int threads, std::string_view matrix = {});

// Returns the seconds for `threads` threads, interpolated linearly between measured numbers of
// threads, or those of the nearest one outside them; 0 for one thread and if nothing was measured.
[[nodiscard]] double fork_join_seconds(std::span<const ForkJoin> measured, int threads);

// Returns one line per figure, for `hone devices`.
[[nodiscard]] std::string describe(const Roofline& roofline);

}  // namespace hone::trial
