// target/cpu_devices.h - the CPUs that target.h names: this machine's and those that are described.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hone/target/cpu.h"

namespace hone::target {

// Reads the CPU of this machine (see host()).
[[nodiscard]] Cpu detect_cpu();
// Returns the names of the CPUs that are described, and such a description.
[[nodiscard]] std::vector<std::string> described_cpus();
[[nodiscard]] std::optional<Cpu> described_cpu(std::string_view name);
// Returns whether code for `code` needs no feature that the machine lacks.
[[nodiscard]] bool has_features(const Cpu& machine, const Cpu& code);
// Returns the machine without what is wider than AVX2. If it lacks AVX2, it is a described CPU.
[[nodiscard]] Cpu limited_to_avx2(const Cpu& machine);
// Return what the functions of these names in target.h return; nothing if the design is not known.
[[nodiscard]] std::string device_key(const Cpu& cpu);
[[nodiscard]] std::optional<Cpu> cpu_of_key(std::string_view key);
// Returns the lines of describe() after the name and the key.
[[nodiscard]] std::string describe(const Cpu& cpu);

}  // namespace hone::target
