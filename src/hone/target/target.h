// target/target.h - a device as data. Rules and models read these numbers; nothing asks "is this
// x86?".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hone/base/status.h"
#include "hone/ir/passes/pass_parameters.h"

namespace hone::target {

struct Cache {
  int level;  // 1 = closest
  int64_t bytes;
  int line_bytes;
  int shared_by;           // cores that share one such cache
  double bytes_per_cycle;  // read bandwidth of one core from this level
};

struct Target {
  std::string name;                   // "host", "host-avx2", "x86-64-avx2", "aarch64-neon", ...
  std::string triple;                 // LLVM's: "x86_64-linux-gnu"
  std::string cpu;                    // LLVM's: "sapphirerapids", "znver4", "x86-64-v3", "generic"
  std::vector<std::string> features;  // LLVM's, with sign: "+avx512f", "-avx512f"
  int vector_bytes = 32;              // widest vector register used
  int vector_registers = 16;
  bool masked_memory = false;      // masked loads and stores are cheap (AVX-512)
  bool broadcast_operand = false;  // an arithmetic operand may be a broadcast from memory (AVX-512)
  int fma_per_cycle = 2;           // vector FMAs started per cycle and core
  int fma_latency = 4;             // cycles
  int loads_per_cycle = 2;         // vector loads
  int cores = 1;                   // that this process may use
  double ghz = 2.5;                // nominal; used for estimates only
  std::vector<Cache> caches;       // by level
  double memory_bytes_per_cycle = 4;  // one core
  ir::PassParameters passes;          // of programs for it; so far all targets have the defaults
  [[nodiscard]] int lanes(int element_bytes) const { return vector_bytes / element_bytes; }
};

// The machine that this runs on: ISA from CPUID, topology from hwloc, cgroup quota and affinity
// respected.
[[nodiscard]] const Target& host();
// Named descriptions, "host" included; the error lists the known names. `Target::cores` is as
// described.
[[nodiscard]] Result<Target> find(std::string_view name);
[[nodiscard]] std::vector<std::string> names();
// Whether it describes this machine, all or a part of what it can do: kernels for it can be
// measured here.
[[nodiscard]] bool runs_here(const Target& target);
// One that kernels can be measured for here; an error for any other.
[[nodiscard]] Result<Target> find_here(std::string_view name);
// Identifies the device in the database: what changes speed, not the name:
// "avx512-sapphirerapids-2c-48K-2M-480M".
[[nodiscard]] std::string device_key(const Target& target);
// The device of a key, on whatever machine it was made: a named one that has it, else what the key
// says, and for what it does not (clock, who shares the last cache, bandwidths) a typical part of
// that design. For looking at what was measured there, not for compiling: its features are the
// least of its instruction set. kUnsupported if the design is not known.
[[nodiscard]] Result<Target> of_key(std::string_view key);
// One line per property, for `hone devices`.
[[nodiscard]] std::string describe(const Target& target);

}  // namespace hone::target
