// analysis/gpu_estimates.h - numbers that the measures of candidates expect of current GPUs beside
// the data of the target (internal to analysis).
#pragma once

namespace hone::analysis {

// An SM has so many schedulers, each of which issues an instruction per cycle.
inline constexpr double kSchedulers = 4;
inline constexpr double kSectorsPerCycle = 4;  // that an SM's load unit handles
// The functions exp and tanh count as so many multiply-adds.
inline constexpr double kMathInstructions = 12;
inline constexpr double kDivideInstructions = 8;
// Cycles from a load to its value, from the SM's own cache, from L2 and from memory.
inline constexpr double kL1Latency = 40, kL2Latency = 260, kMemoryLatency = 600;
inline constexpr double kSharedLatency = 30;
inline constexpr double kShuffleLatency = 23;  // from a lane's value to the lane that asks for it
inline constexpr double kArithmeticLatency = 4;
inline constexpr double kBarrierCycles = 40;
// Passes of a loop inside a thread whose loads a compiler starts together.
inline constexpr double kPassesTogether = 4;

}  // namespace hone::analysis
