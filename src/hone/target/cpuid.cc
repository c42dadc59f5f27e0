#include "hone/target/cpuid.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "hone/runtime/x86_features.h"

namespace hone::target {
namespace {

// They are told apart from the rest only to name the CPU and are never listed as features to use.
constexpr std::string_view kNaming[] = {"amx-bf16", "amx-fp16"};

bool has_all(const CpuId& id, std::initializer_list<const char*> features) {
  return std::all_of(features.begin(), features.end(), [&](const char* f) { return id.has(f); });
}

// A model number is believed only if the CPU has `has` and lacks `lacks` (empty: nothing to check).
struct ModelName {
  const char* vendor;
  int family, first_model, last_model;
  const char* name;
  const char* has;
  const char* lacks;
};
// Family and model numbers as in LLVM's lib/TargetParser/Host.cpp.
constexpr ModelName kModelNames[] = {
    {"GenuineIntel", 6, 0x3c, 0x3c, "haswell", "avx2", "adx"},
    {"GenuineIntel", 6, 0x3f, 0x3f, "haswell", "avx2", "adx"},
    {"GenuineIntel", 6, 0x45, 0x46, "haswell", "avx2", "adx"},
    {"GenuineIntel", 6, 0x3d, 0x3d, "broadwell", "adx", "clflushopt"},
    {"GenuineIntel", 6, 0x47, 0x47, "broadwell", "adx", "clflushopt"},
    {"GenuineIntel", 6, 0x4f, 0x4f, "broadwell", "adx", "clflushopt"},
    {"GenuineIntel", 6, 0x56, 0x56, "broadwell", "adx", "clflushopt"},
    {"GenuineIntel", 6, 0x4e, 0x4e, "skylake", "avx2", "avx512f"},
    {"GenuineIntel", 6, 0x5e, 0x5e, "skylake", "avx2", "avx512f"},
    {"GenuineIntel", 6, 0x8e, 0x8e, "skylake", "avx2", "avx512f"},
    {"GenuineIntel", 6, 0x9e, 0x9e, "skylake", "avx2", "avx512f"},
    {"GenuineIntel", 6, 0xa5, 0xa6, "skylake", "avx2", "avx512f"},
    {"GenuineIntel", 6, 0x7d, 0x7e, "icelake-client", "avx512vbmi2", "avx512bf16"},
    {"GenuineIntel", 6, 0x8c, 0x8d, "tigerlake", "avx512vp2intersect", "avx512bf16"},
    {"GenuineIntel", 6, 0xa7, 0xa7, "rocketlake", "avx512vbmi2", "avx512bf16"},
    {"GenuineIntel", 6, 0xcf, 0xcf, "emeraldrapids", "avx512fp16", "amx-fp16"},
    {"GenuineIntel", 6, 0x97, 0x97, "alderlake", "avxvnni", "avx512f"},
    {"GenuineIntel", 6, 0x9a, 0x9a, "alderlake", "avxvnni", "avx512f"},
    {"GenuineIntel", 6, 0xb7, 0xb7, "raptorlake", "avxvnni", "avx512f"},
    {"GenuineIntel", 6, 0xba, 0xba, "raptorlake", "avxvnni", "avx512f"},
    {"GenuineIntel", 6, 0xbf, 0xbf, "raptorlake", "avxvnni", "avx512f"},
    {"GenuineIntel", 6, 0xaa, 0xaa, "meteorlake", "avxvnni", "avx512f"},
    {"GenuineIntel", 6, 0xac, 0xac, "meteorlake", "avxvnni", "avx512f"},
    {"GenuineIntel", 6, 0xc5, 0xc6, "arrowlake", "avxvnniint8", "avx512f"},
    {"AuthenticAMD", 0x17, 0x00, 0x2f, "znver1", "avx2", "clwb"},
};

std::string from_features_intel(const CpuId& id) {
  if (id.has("avx512f")) {
    if (has_all(id, {"avx512fp16", "amx-fp16"})) return "graniterapids";
    if (has_all(id, {"avx512fp16", "avx512vbmi2"})) return "sapphirerapids";
    if (has_all(id, {"avx512vbmi2", "avx512vnni", "gfni"})) return "icelake-server";
    if (has_all(id, {"avx512bf16", "avx512vnni"})) return "cooperlake";
    if (id.has("avx512vnni")) return "cascadelake";
    return "skylake-avx512";
  }
  if (id.has("avxvnni")) return "alderlake";
  if (id.has("clflushopt")) return "skylake";
  return id.has("adx") ? "broadwell" : "haswell";
}

std::string from_features_amd(const CpuId& id) {
  if (id.has("avx512f")) {
    return id.has("avxvnni") || id.has("avx512vp2intersect") ? "znver5" : "znver4";
  }
  if (id.has("vaes")) return "znver3";
  return id.has("clwb") ? "znver2" : "znver1";
}

}  // namespace

CpuId read_cpuid() {
  CpuId id;
#if defined(__x86_64__)
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0, &a, &b, &c, &d) == 0) return id;
  char vendor[12];
  std::memcpy(vendor, &b, 4), std::memcpy(vendor + 4, &d, 4), std::memcpy(vendor + 8, &c, 4);
  id.vendor.assign(vendor, sizeof(vendor));
  if (__get_cpuid(1, &a, &b, &c, &d) != 0) {
    id.family = static_cast<int>((a >> 8) & 0xf);
    id.model = static_cast<int>((a >> 4) & 0xf);
    if (id.family == 6 || id.family == 15) id.model += static_cast<int>((a >> 16) & 0xf) << 4;
    if (id.family == 15) id.family += static_cast<int>((a >> 20) & 0xff);
  }
  const uint64_t saved = runtime::x86_saved_state();
  for (const runtime::X86Feature& feature : runtime::kX86Features) {
    const bool written = (feature.use & runtime::kWritten) != 0;
    const bool names =
        std::find(std::begin(kNaming), std::end(kNaming), feature.name) != std::end(kNaming);
    if ((written && runtime::x86_has(feature, saved)) || (names && runtime::x86_reports(feature)))
      id.features.insert(feature.name);
  }
  if (__get_cpuid(0x16, &a, &b, &c, &d) != 0) id.base_ghz = (a & 0xffff) * 1e-3;
#endif
  return id;
}

std::string llvm_cpu(const CpuId& id) {
  if (id.vendor.empty()) return "generic";
  if (!has_all(id, {"avx2", "fma", "bmi2", "lzcnt", "f16c", "movbe"})) {
    return has_all(id, {"sse4.2", "popcnt", "cx16"}) ? "x86-64-v2" : "x86-64";
  }
  for (const ModelName& m : kModelNames) {
    if (id.vendor == m.vendor && id.family == m.family && id.model >= m.first_model &&
        id.model <= m.last_model && id.has(m.has) && !id.has(m.lacks)) {
      return m.name;
    }
  }
  const bool v4 = has_all(id, {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"});
  // AVX-512 in part only (Knights Landing): no server name fits.
  if (id.has("avx512f") && !v4) return "x86-64-v3";
  if (id.vendor == "GenuineIntel") return from_features_intel(id);
  if (id.vendor == "AuthenticAMD" && id.family >= 0x17) return from_features_amd(id);
  return v4 ? "x86-64-v4" : "x86-64-v3";
}

std::vector<std::string> llvm_features(const CpuId& id) {
  std::vector<std::string> result;
  if (id.vendor.empty()) return result;
  for (const runtime::X86Feature& feature : runtime::kX86Features) {
    if ((feature.use & runtime::kWritten) != 0)
      result.push_back((id.has(feature.name) ? "+" : "-") + std::string(feature.name));
  }
  // Whoever writes 512-bit vectors means it: LLVM's tuning for these CPUs would split them.
  if (id.has("avx512f")) result.emplace_back("-prefer-256-bit");
  return result;
}

}  // namespace hone::target
