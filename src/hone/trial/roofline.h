// trial/roofline.h - what a machine can do at best, as found by running (measure_roofline.h): the
// limits that a kernel's time is compared with (Williams et al., CACM 52(4), 2009, with a roof per
// cache level).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hone/base/status.h"

namespace hone::trial {

// By one core alone, and by all cores together.
struct Rate {
  double one = 0, all = 0;
};

struct RooflineLevel {
  int level = 0;      // 1 = closest cache; 0 = memory
  int64_t bytes = 0;  // of one such cache; of memory: 0
  int shared_by = 1;  // cores that share one
  Rate read, write;   // bytes a second
};

// A phase of one tile a thread, each on a core, workers awake: from its start to its end.
struct ForkJoin {
  int threads = 2;
  double seconds = 0;
};

struct Roofline {
  int cores = 1;
  Rate flops;                         // float32 operations a second, an FMA is two
  std::vector<ForkJoin> fork_join;    // more and more threads, of all cores last; empty: one core
  std::vector<RooflineLevel> levels;  // the closest first, memory last
  int64_t unix_time = 0;              // when it was measured, seconds
  double host_load = 0;               // the 1-minute load average then
};

// Why these are no figures of a machine, or ok: all rates are positive and finite, memory is last.
[[nodiscard]] Status check(const Roofline& roofline);

// The rate of so many threads: they add up until all cores together can do no more.
[[nodiscard]] double rate_of(const Rate& rate, int cores, int threads);

// The level in which `working_set` bytes live that so many threads, one a core, share evenly.
[[nodiscard]] const RooflineLevel& level_of(const Roofline& roofline, double working_set,
                                            int threads);

// The least seconds for `flops` operations on `bytes` read or written, which live where a working
// set of that many bytes does; the greater of the time to compute and the time to move. The
// bandwidth is the greater one of reads and writes: no mix of both beats it.
struct Bound {
  double seconds = 0;
  std::string_view what;  // binds: "compute", or the level whose bandwidth does: "L2", "memory"
};
[[nodiscard]] Bound bound(double flops, double bytes, double working_set, const Roofline& roofline,
                          int threads);

// Seconds for so many threads, on the line between the numbers of threads that were measured, else
// of the nearest one; 0 for one thread, and where none was measured.
[[nodiscard]] double fork_join_seconds(std::span<const ForkJoin> measured, int threads);

// One line per figure, for `hone devices`.
[[nodiscard]] std::string describe(const Roofline& roofline);

}  // namespace hone::trial
