// target/machine_table.h - numbers that the machine does not report: vector units and bandwidths of
// each CPU design, by LLVM's name. The table is data only; estimates are marked as such.
#pragma once

#include <cstdint>
#include <string_view>

namespace hone::target {

struct MachineNumbers {
  const char* cpu;  // LLVM's name
  const char* isa;  // short name in device keys: "avx512", "avx2", "neon", "sse4"
  int vector_bytes;
  int vector_registers;
  bool masked_memory;
  bool broadcast_operand;
  int fma_per_cycle;  // with the widest vectors
  int fma_latency;
  int loads_per_cycle;              // with the widest vectors
  double cache_bytes_per_cycle[3];  // read bandwidth of one core from L1, L2, L3
  double memory_bytes_per_cycle;
  // Sizes of a typical part, for named descriptions and for machines that do not report theirs.
  int64_t cache_bytes[3];  // 0: there is no cache of this level
  int l3_shared_by;
};

// Returns the row of this name, or that of x86-64-v3 if the name is unknown.
[[nodiscard]] const MachineNumbers& machine_numbers(std::string_view cpu);

}  // namespace hone::target
