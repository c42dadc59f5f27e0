// analysis/gpu_measure.h - static measures of a candidate on a GPU (in the spirit of Tuna, section
// 5): instructions, memory traffic, use of registers and shared memory, and resident blocks, per
// root stage, which is one launch. They are computed from target data, without training.
#pragma once

#include <span>

#include "hone/analysis/nest.h"
#include "hone/target/target.h"

namespace hone::analysis {

// The time from one launch to the next one of the same stream.
inline constexpr double kLaunchSeconds = 2.5e-6;

// What one block does in one stage.
struct GpuStageMeasure {
  int stage = -1;
  double threads = 1;          // that the loops over threads give work to
  double passes = 1;           // times that a thread runs the unrolled loops of its body
  double arithmetic = 0;       // instructions of one thread
  double global_requests = 0;  // load and store instructions of one warp to global memory
  double global_sectors = 0;   // pieces of 32 bytes that these touch
  double shared_requests = 0;  // load and store instructions of one warp to shared memory
  double shared_cycles = 0;    // that these take, with conflicts between banks
  double l2_bytes = 0;         // moved between L2 and the SM
  double unique_bytes = 0;     // of global memory that all blocks together touch
};

// A stage that is computed at root, with everything that is computed inside it.
struct GpuRootMeasure {
  int stage = -1;
  double blocks = 1;
  double threads = 1;          // of a block
  double registers = 0;        // of a thread
  double shared_bytes = 0;     // of a block
  double resident_blocks = 1;  // on one SM; 0 if a block does not fit
  std::vector<GpuStageMeasure> stages;
  // Cycles of one SM per block by each limit alone, and of one block from its start to its end.
  double arithmetic_cycles = 0, memory_cycles = 0, l2_cycles = 0, latency_cycles = 0;
  double l2_bytes = 0, memory_bytes = 0;  // of all blocks, from L2 and from memory
  // Returns the rounds in which the multiprocessor that has most blocks runs them, and its blocks.
  [[nodiscard]] double busiest_blocks(const target::Gpu& gpu) const;
  [[nodiscard]] double rounds(const target::Gpu& gpu) const;
  [[nodiscard]] double memory_seconds(const target::Gpu& gpu) const;
  [[nodiscard]] double seconds(const target::Gpu& gpu) const;
};

struct GpuMeasure {
  std::vector<GpuRootMeasure> roots;
  // Infinity if a block does not fit the device.
  [[nodiscard]] double seconds(const target::Gpu& gpu) const;
};

[[nodiscard]] GpuMeasure measure_gpu(const schedule::State& state, const schedule::Bounds& bounds,
                                     const target::Gpu& gpu);

}  // namespace hone::analysis
