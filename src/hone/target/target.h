// target/target.h - a device as data. Rules and models read these numbers; no code asks whether the
// device is an x86.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hone/base/status.h"
#include "hone/ir/passes/pass_parameters.h"

namespace hone::target {

struct Cache {
  int level;  // 1 is the closest to the core
  int64_t bytes;
  int line_bytes;
  int shared_by;           // number of cores that share one such cache
  double bytes_per_cycle;  // read bandwidth of one core from this level
};

struct Target {
  std::string name;    // such as "host", "host-avx2", "x86-64-avx2", "aarch64-neon"
  std::string triple;  // as LLVM names it: "x86_64-linux-gnu"
  std::string cpu;     // as LLVM names it: "sapphirerapids", "znver4", "x86-64-v3", "generic"
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
  // parameters of passes over programs for this target; so far all targets have the defaults
  ir::PassParameters passes;
  [[nodiscard]] int lanes(int element_bytes) const { return vector_bytes / element_bytes; }
};

// Returns the machine that this process runs on: its ISA is from CPUID, its topology from hwloc,
// and the cgroup's quota and the affinity mask limit its cores.
[[nodiscard]] const Target& host();
// Returns a named description ("host" is one). `Target::cores` is as described. The error lists the
// known names.
[[nodiscard]] Result<Target> find(std::string_view name);
[[nodiscard]] std::vector<std::string> names();
// Returns whether code for `part`, a target of this kind of machine, runs on `machine`: it needs no
// feature that the machine lacks.
[[nodiscard]] bool is_part_of(const Target& part, const Target& machine);
// Returns whether the target describes this machine or a subset of its features, so that kernels
// for it can be measured here.
[[nodiscard]] bool runs_here(const Target& target);
// Finds a target that runs_here(); any other is an error.
[[nodiscard]] Result<Target> find_here(std::string_view name);
// Returns the key of the device in the database. It has what changes speed, not the name:
// "avx512-sapphirerapids-2c-48K-2M-480M".
[[nodiscard]] std::string device_key(const Target& target);
// Returns a device for a key from any machine. If a named one has the key, it is that; else numbers
// that are not in the key (clock, sharing of the last cache, bandwidths) are those of a typical
// part of its design. Its features are only the minimum of its instruction set, so it serves to
// look at records from that device, not to compile for it. The error is kUnsupported if the design
// is not known.
[[nodiscard]] Result<Target> of_key(std::string_view key);
// Returns one line per property, for `hone devices`.
[[nodiscard]] std::string describe(const Target& target);

}  // namespace hone::target
