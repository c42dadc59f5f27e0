// target/target.h - a device as data. Rules and models read these numbers; no code asks for a
// device's name. What only concerns one kind of device takes that kind's part (Cpu, Gpu).
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "hone/base/assert.h"
#include "hone/base/status.h"
#include "hone/ir/passes/pass_parameters.h"
#include "hone/target/cpu.h"
#include "hone/target/gpu.h"
#include "hone/target/kind.h"

namespace hone::target {

struct Target {
  std::string name;             // such as "host", "host-avx2", "x86-64-avx2", "cuda-sm_80"
  std::variant<Cpu, Gpu> part;  // in the order of Kind
  // parameters of passes over programs for this target; so far all targets have the defaults
  ir::PassParameters passes;

  [[nodiscard]] Kind kind() const { return static_cast<Kind>(part.index()); }
  // Returns the part of the kind that the device is known to have.
  [[nodiscard]] const Cpu& cpu() const { return checked(std::get_if<Cpu>(&part)); }
  [[nodiscard]] Cpu& cpu() { return checked(std::get_if<Cpu>(&part)); }
  [[nodiscard]] const Gpu& gpu() const { return checked(std::get_if<Gpu>(&part)); }
  [[nodiscard]] Gpu& gpu() { return checked(std::get_if<Gpu>(&part)); }

 private:
  template <typename Part>
  static Part& checked(Part* part) {
    HONE_ASSERT(part != nullptr, "a device is described as one of another kind");
    return *part;
  }
};

// Returns the machine that this process runs on: its ISA is from CPUID, its topology from hwloc,
// and the cgroup's quota and the affinity mask limit its cores.
[[nodiscard]] const Target& host();
// Finds a device by its name: "host", one that is described, or "cuda" and "opencl", the first GPU
// of this machine that the driver of CUDA, or of OpenCL, knows. The error lists the known names, or
// says why there is no such GPU here.
[[nodiscard]] Result<Target> find(std::string_view name);
// Returns all names, also those of GPUs that are not here.
[[nodiscard]] std::vector<std::string> names();
// Returns whether code for `part`, a target of this kind of machine, runs on `machine`: it needs no
// feature that the machine lacks.
[[nodiscard]] bool is_part_of(const Target& part, const Target& machine);
// Returns whether the target describes this machine or a subset of its features, so that kernels
// for it can be measured here.
[[nodiscard]] bool runs_here(const Target& target);
// Returns the key of the device in the database. It has what changes speed, not the name:
// "avx512-sapphirerapids-2c-48K-2M-480M" or "sm_90a-132sm-50M-80G".
[[nodiscard]] std::string device_key(const Target& target);
// Returns a device for a key from any machine. If a named one has the key, it is that; else numbers
// that are not in the key (clock, sharing of the last cache, bandwidths) are those of a typical
// part of its design. A CPU's features are only the minimum of its instruction set, so it serves to
// look at records from that device, not to compile for it. The error is kUnsupported if the design
// is not known.
[[nodiscard]] Result<Target> of_key(std::string_view key);
// Returns one line per property, for `hone devices`.
[[nodiscard]] std::string describe(const Target& target);

}  // namespace hone::target
