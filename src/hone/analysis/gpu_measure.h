// analysis/gpu_measure.h - static measures of a candidate on a GPU (in the spirit of Tuna, section
// 5): instructions, memory traffic, use of registers and shared memory, and resident blocks, per
// root stage, which is one launch. They are computed from target data, without training.
#pragma once

#include "hone/analysis/nest.h"
#include "hone/target/target.h"

namespace hone::analysis {

// The time from one launch to the next one of the same stream.
inline constexpr double kLaunchSeconds = 2.5e-6;

// The work of one block in one stage.
struct GpuStageMeasure {
  int stage = -1;
  double threads = 1;          // threads that get work
  double passes = 1;           // passes of a thread or warp through the loops of its body
  double turns = 1;            // times that the block gets to the stage after another one
  double arithmetic = 0;       // instructions of one thread
  double matrix = 0;           // the matrix instructions among them
  double independent = 1;      // results of a pass that do not wait for each other
  double global_requests = 0;  // load and store instructions of one warp to global memory
  double global_sectors = 0;   // pieces of 32 bytes that these touch
  double shared_requests = 0;  // load and store instructions of one warp to shared memory
  double shared_cycles = 0;    // their cycles, with conflicts between banks
  double l2_bytes = 0;         // bytes that move between L2 and the SM
  double memory_bytes = 0;     // bytes that all blocks together move between memory and L2
  // Cycles of the SM for the block: those to issue and compute instructions, those of its unit for
  // loads and stores, those of the busiest of its units, and those of one thread that has the SM
  // for itself, without and in waiting for loads.
  double compute_cycles = 0, unit_cycles = 0, busy_cycles = 0, latency_cycles = 0, wait_cycles = 0;
  double ahead = 0;  // turns of the block that loads are started ahead of
};

// The seconds of a launch by each limit alone.
struct GpuTimes {
  double arithmetic = 0;  // instructions are issued and computed
  double units = 0;       // units for loads and stores
  double l2 = 0;          // traffic with L2
  double latency = 0;     // threads wait for results and barriers, and too few others run
  double memory = 0;      // traffic with memory
  [[nodiscard]] double seconds() const;  // with the launch
};

// A stage that is computed at root, with everything that is computed inside it.
struct GpuRootMeasure {
  int stage = -1;
  double blocks = 1;
  double threads = 1;          // threads per block
  double registers = 0;        // registers that a thread needs
  double register_limit = 0;   // registers that it can have
  double shared_bytes = 0;     // shared memory per block
  double resident_blocks = 1;  // blocks that fit on one SM at a time; 0 if one is too large
  std::vector<GpuStageMeasure> stages;
  // Cycles of one SM per block by each limit alone, and of one block from its start to its end.
  double arithmetic_cycles = 0, memory_cycles = 0, l2_cycles = 0, latency_cycles = 0;
  double l2_bytes = 0, memory_bytes = 0;  // traffic of all blocks with L2 and with memory
  // Returns the blocks of the SM that has most of them, and in how many rounds it runs them.
  [[nodiscard]] double busiest_blocks(const target::Gpu& gpu) const;
  [[nodiscard]] double rounds(const target::Gpu& gpu) const;
  [[nodiscard]] double warps(const target::Gpu& gpu) const;  // warps of a block
  [[nodiscard]] GpuTimes times(const target::Gpu& gpu) const;
  [[nodiscard]] double seconds(const target::Gpu& gpu) const;
};

struct GpuMeasure {
  std::vector<GpuRootMeasure> roots;
  // Infinity if a block does not fit the device.
  [[nodiscard]] double seconds(const target::Gpu& gpu) const;
};

[[nodiscard]] GpuMeasure measure_gpu(std::span<const Nest> nests, const schedule::State& state,
                                     const schedule::Bounds& bounds, const target::Gpu& gpu);
[[nodiscard]] GpuMeasure measure_gpu(const schedule::State& state, const schedule::Bounds& bounds,
                                     const target::Gpu& gpu);
// Returns the first of the loops of the body: the innermost ones that are unrolled or vectorized,
// or all loops inside of those over warps if a warp computes them together.
[[nodiscard]] size_t gpu_body(const Nest& nest);

}  // namespace hone::analysis
