// target/cpuid.h - the result of the CPUID instruction as a value, and the LLVM names that follow
// from it. A hypervisor may report any model number, so a name is taken from the model only where
// the features agree; else it is inferred from the features alone.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hone::target {

struct CpuId {
  std::string vendor;  // such as "GenuineIntel" or "AuthenticAMD"
  int family = 0;
  int model = 0;
  // LLVM's names of the features that the kernel has enabled, too.
  std::set<std::string, std::less<>> features;
  double base_ghz = 0;  // 0 if not reported
  [[nodiscard]] bool has(std::string_view feature) const { return features.contains(feature); }
};

// Reads the CPUID of this machine; empty if it is not an x86-64.
[[nodiscard]] CpuId read_cpuid();
// Returns the name of the scheduling model: "sapphirerapids", "znver4", "x86-64-v3", ...
[[nodiscard]] std::string llvm_cpu(const CpuId& id);
// Returns every feature that Hone knows, with its sign. A feature that the name above implies and
// this machine lacks is switched off explicitly.
[[nodiscard]] std::vector<std::string> llvm_features(const CpuId& id);

}  // namespace hone::target
