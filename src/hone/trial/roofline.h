// trial/roofline.h - the measured limits of a machine (measure_roofline.h), with which a kernel's
// time is compared (Williams et al., CACM 52(4), 2009, with a roof per cache level).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hone/base/status.h"

namespace hone::trial {

// A rate of one core alone, and one of all cores together.
struct Rate {
  double one = 0, all = 0;
};

struct RooflineLevel {
  int level = 0;      // 1 for the closest cache, 0 for memory
  int64_t bytes = 0;  // size of one such cache; 0 for memory
  int shared_by = 1;  // number of cores that share one
  Rate read, write;   // in bytes per second
};

// The time from the start to the end of a phase with one tile per thread, each thread on its own
// core and awake.
struct ForkJoin {
  int threads = 2;
  double seconds = 0;
};

struct Roofline {
  int cores = 1;
  Rate flops;  // float32 operations per second; an FMA counts as two
  // By increasing number of threads, up to all cores; empty on one core.
  std::vector<ForkJoin> fork_join;
  std::vector<RooflineLevel> levels;  // closest cache first, memory last
  int64_t unix_time = 0;              // time of the measurement in seconds
  double host_load = 0;               // 1-minute load average during the measurement
};

// Returns ok, or why these cannot be the figures of a machine: all rates must be positive and
// finite, and memory must be last.
[[nodiscard]] Status check(const Roofline& roofline);

// Returns the rate of `threads` threads: rates of single cores add up until they reach that of all
// cores.
[[nodiscard]] double rate_of(const Rate& rate, int cores, int threads);

// Returns the level that holds a working set of this many bytes, which the threads, one per core,
// share evenly.
[[nodiscard]] const RooflineLevel& level_of(const Roofline& roofline, double working_set,
                                            int threads);

// The least seconds for `flops` operations on `bytes` that are read or written, if they are in the
// level that holds a working set of their size. It is the greater of the time to compute and the
// time to move. The bandwidth is the greater one of reads and writes, as no mix of both is faster.
struct Bound {
  double seconds = 0;
  // Limiting factor: "compute", or the level whose bandwidth it is, such as "L2" or "memory".
  std::string_view what;
};
[[nodiscard]] Bound bound(double flops, double bytes, double working_set, const Roofline& roofline,
                          int threads);

// Returns the seconds for `threads` threads, interpolated linearly between measured numbers of
// threads, or those of the nearest one outside them; 0 for one thread and if nothing was measured.
[[nodiscard]] double fork_join_seconds(std::span<const ForkJoin> measured, int threads);

// Returns one line per figure, for `hone devices`.
[[nodiscard]] std::string describe(const Roofline& roofline);

}  // namespace hone::trial
