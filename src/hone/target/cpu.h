// target/cpu.h - the description of a CPU: what the compiler needs to know, and the numbers from
// which rules and models compute. No code asks whether it is an x86.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hone::target {

struct Cache {
  int level;  // 1 is the closest to the core
  int64_t bytes;
  int line_bytes;
  int shared_by;           // number of cores that share one such cache
  double bytes_per_cycle;  // read bandwidth of one core from this level
};

struct Cpu {
  std::string triple;  // as LLVM names it: "x86_64-linux-gnu"
  std::string model;   // as LLVM names it: "sapphirerapids", "znver4", "x86-64-v3", "generic"
  std::vector<std::string> features;  // as LLVM names them, with sign: "+avx512f", "-avx512f"
  int vector_bytes = 32;              // width of the widest vector register that code uses
  int vector_registers = 16;
  bool masked_memory = false;      // masked loads and stores are cheap (AVX-512)
  bool broadcast_operand = false;  // an arithmetic operand may be a broadcast from memory (AVX-512)
  int fma_per_cycle = 2;           // vector FMAs started per cycle and core
  int fma_latency = 4;             // in cycles
  int loads_per_cycle = 2;         // vector loads per cycle
  int cores = 1;                   // cores that this process may use
  double ghz = 2.5;                // nominal clock, used for estimates only
  std::vector<Cache> caches;       // ordered by level
  double memory_bytes_per_cycle = 4;  // read bandwidth of one core
  [[nodiscard]] int lanes(int element_bytes) const { return vector_bytes / element_bytes; }
};

}  // namespace hone::target
