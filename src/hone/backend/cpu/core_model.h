// backend/cpu/core_model.h - how many instructions of a kind a core starts in a cycle and how long
// they take, for the list scheduler (list_schedule.h).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "hone/target/cpu.h"

namespace hone::backend::cpu {

// The part of a core that an instruction needs beside its memory accesses.
enum class Unit : uint8_t {
  kNone,
  kFma,
  kVector,
  kShuffle,
  kScalar,
  kMultiply,
  kBranch,
  kLoad,
  kStore
};
inline constexpr size_t kNumUnits = 9;

struct CoreModel {
  std::string_view name;  // LLVM's name of the processor
  int issue;              // instructions that enter in a cycle
  int window;             // instructions in flight (the reorder buffer)
  int wide_bits;          // vectors of more bits take twice the time of their port
  struct Use {
    uint32_t ports;  // one bit for each port that can do it
    int latency;     // in cycles
  };
  std::array<Use, kNumUnits> uses;   // by Unit
  uint32_t wide_loads, wide_stores;  // ports that load and store the widest vectors
};

// Returns the model of the target's processor, or one of its instruction set that is like it.
[[nodiscard]] const CoreModel& core_model(const target::Cpu& target);

}  // namespace hone::backend::cpu
