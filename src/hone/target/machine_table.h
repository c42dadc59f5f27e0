// target/machine_table.h - numbers that the machine does not tell: vector units and bandwidths of
// each CPU design, by LLVM's name. Data only; estimates are marked as such.
#pragma once

#include <cstdint>
#include <string_view>

namespace hone::target {

struct MachineNumbers {
  const char* cpu;  // LLVM's name
  const char* isa;  // the short name in device keys: "avx512", "avx2", "neon", "sse4"
  int vector_bytes;
  int vector_registers;
  bool masked_memory;
  bool broadcast_operand;
  int fma_per_cycle;  // of the widest vectors
  int fma_latency;
  int loads_per_cycle;              // of the widest vectors
  double cache_bytes_per_cycle[3];  // L1, L2, L3, read by one core
  double memory_bytes_per_cycle;
  // Of a typical part, for named descriptions and where the topology is not told.
  int64_t cache_bytes[3];
  int l3_shared_by;
};

// The row of this name; for an unknown one, that of x86-64-v3.
[[nodiscard]] const MachineNumbers& machine_numbers(std::string_view cpu);

}  // namespace hone::target
