// analysis/cpu_measure.h - static measures of a candidate on a CPU (in the spirit of Tuna, section
// 4, and of PARLOOPER's tile-level cache model): instructions of the inner bodies and bytes moved
// between memory levels, per root stage. No training, target data only.
#pragma once

#include <span>

#include "hone/analysis/nest.h"
#include "hone/target/target.h"

namespace hone::analysis {

// A phase's, on any number of threads above one that spin.
inline constexpr double kForkJoinSeconds = 1.5e-6;

// What one pass through a body would take if nothing else held it up, in cycles.
struct BodyCycles {
  double arithmetic = 0, loads = 0, stores = 0, issue = 0, latency = 0;
};

// How a nest uses a cache.
struct CacheUse {
  size_t first = 0;           // loops from here on have their data in it
  double held = 0;            // what those need / what the nest can count on
  double beyond = 0;          // the same with the loop around them; that of all if all fits
  double constant_bytes = 0;  // of what is moved into it: constants, ...
  double written_bytes = 0;   // ... and the result
};

struct StageMeasure {
  int stage = -1;
  size_t body = 0;         // loops from here on are unrolled or vectorized
  double body_cycles = 0;  // one pass through these
  double body_instructions = 0;
  BodyCycles bounds;          // what body_cycles is made of
  double accumulators = 1;    // vectors of the result in a body
  double distinct_loads = 0;  // vectors that a body reads, however often
  double registers = 0;       // vector registers that the body wants
  double compute_cycles = 0;  // all iterations, one core
  std::vector<double> bytes;  // moved into each cache level from the one behind it; one per cache
  std::vector<CacheUse> caches;  // one per cache
};

// A stage that is computed at the root, with all that is computed inside of it.
struct RootMeasure {
  int stage = -1;
  double tiles = 1;  // iterations of the parallel loop
  std::vector<StageMeasure> stages;
  double compute_cycles = 0;
  std::vector<double> level_cycles;  // transfer time per cache level, one core
  // Share of the work that the busiest of the threads has, and the time of the root on them.
  [[nodiscard]] double busiest_share(int threads) const;
  [[nodiscard]] double seconds(const target::Target& target, int threads) const;
};

struct CpuMeasure {
  std::vector<RootMeasure> roots;
  [[nodiscard]] double seconds(const target::Target& target, int threads) const;
};

[[nodiscard]] CpuMeasure measure_cpu(const schedule::State& state, const schedule::Bounds& bounds,
                                     const target::Target& target, int threads);
[[nodiscard]] CpuMeasure measure_cpu(std::span<const Nest> nests, const target::Target& target,
                                     int threads);

}  // namespace hone::analysis
