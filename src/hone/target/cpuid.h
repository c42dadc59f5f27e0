// target/cpuid.h - what the CPUID instruction says, as a value, and the LLVM names that follow from
// it. A hypervisor may report any model number, so a name is only taken from the model where the
// features agree; else it is inferred from the features alone.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hone::target {

struct CpuId {
  std::string vendor;  // "GenuineIntel", "AuthenticAMD", ...
  int family = 0;
  int model = 0;
  std::set<std::string, std::less<>> features;  // LLVM's names; only what the kernel enabled too
  double base_ghz = 0;                          // 0: not told
  [[nodiscard]] bool has(std::string_view feature) const { return features.contains(feature); }
};

// Of the machine this runs on; empty where it is not an x86-64.
[[nodiscard]] CpuId read_cpuid();
// The name of the scheduling model: "sapphirerapids", "znver4", "x86-64-v3", ...
[[nodiscard]] std::string llvm_cpu(const CpuId& id);
// Every feature that Hone knows, with its sign: what the name above implies and this machine lacks
// is switched off explicitly.
[[nodiscard]] std::vector<std::string> llvm_features(const CpuId& id);

}  // namespace hone::target
