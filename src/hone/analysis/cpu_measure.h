// analysis/cpu_measure.h - static measures of a candidate on a CPU (in the spirit of Tuna, section
// 4, and of PARLOOPER's tile-level cache model): instructions of the inner bodies, and bytes moved
// between memory levels, per root stage. They are computed from target data, without training.
#pragma once

#include <span>

#include "hone/analysis/nest.h"
#include "hone/target/cpu.h"

namespace hone::analysis {

// The cost of one phase on any number of threads above one, whose workers spin.
inline constexpr double kForkJoinSeconds = 1.5e-6;

// The cycles of one pass through a body by each limit alone.
struct BodyCycles {
  double arithmetic = 0, loads = 0, stores = 0, issue = 0, latency = 0;
};

// The use of one cache by a nest.
struct CacheUse {
  size_t first = 0;           // first loop from which on the data of the loops stays in the cache
  double held = 0;            // data of those loops / capacity that the nest can count on
  double beyond = 0;          // as `held` with the next outer loop; that of all loops if all fits
  double constant_bytes = 0;  // part of the bytes moved into it that are constants
  double written_bytes = 0;   // part that is the result
};

struct StageMeasure {
  int stage = -1;
  size_t body = 0;         // first loop from which on loops are unrolled or vectorized
  double body_cycles = 0;  // cycles of one pass through these loops
  double body_instructions = 0;
  BodyCycles bounds;             // limits from which body_cycles is computed
  double accumulators = 1;       // vectors of the result in a body
  double distinct_loads = 0;     // different vectors that a body reads
  double registers = 0;          // vector registers that the body needs
  double compute_cycles = 0;     // cycles of all iterations on one core
  std::vector<double> bytes;     // moved into each cache from the next level; one per cache
  std::vector<CacheUse> caches;  // one per cache
};

// A stage that is computed at root, with everything that is computed inside it.
struct RootMeasure {
  int stage = -1;
  double tiles = 1;  // iterations of the parallel loop
  std::vector<StageMeasure> stages;
  double compute_cycles = 0;
  std::vector<double> level_cycles;  // transfer time per cache level on one core
  // Returns the share of the work that the busiest thread has, and the time of the root with that
  // many threads.
  [[nodiscard]] double busiest_share(int threads) const;
  [[nodiscard]] double seconds(const target::Cpu& target, int threads) const;
};

struct CpuMeasure {
  std::vector<RootMeasure> roots;
  [[nodiscard]] double seconds(const target::Cpu& target, int threads) const;
};

[[nodiscard]] CpuMeasure measure_cpu(const schedule::State& state, const schedule::Bounds& bounds,
                                     const target::Cpu& target, int threads);
[[nodiscard]] CpuMeasure measure_cpu(std::span<const Nest> nests, const target::Cpu& target,
                                     int threads);

}  // namespace hone::analysis
