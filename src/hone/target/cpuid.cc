#include "hone/target/cpuid.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace hone::target {
namespace {

enum Register { kEax, kEbx, kEcx, kEdx };
// Register state that the kernel must save before a feature may be used (XCR0 bits).
constexpr uint64_t kAlways = 0;
constexpr uint64_t kYmm = 0x6;
constexpr uint64_t kZmm = 0xe6;

struct FeatureBit {
  const char* name;
  uint32_t leaf, subleaf;
  Register reg;
  int bit;
  uint64_t state;
};
// Intel SDM volume 2A, CPUID; AMD APM volume 3, appendix E. AMX is left out: using it needs a
// permission from the kernel that generated code does not ask for.
constexpr FeatureBit kFeatureBits[] = {
    {"sse3", 1, 0, kEcx, 0, kAlways},
    {"pclmul", 1, 0, kEcx, 1, kAlways},
    {"ssse3", 1, 0, kEcx, 9, kAlways},
    {"fma", 1, 0, kEcx, 12, kYmm},
    {"cx16", 1, 0, kEcx, 13, kAlways},
    {"sse4.1", 1, 0, kEcx, 19, kAlways},
    {"sse4.2", 1, 0, kEcx, 20, kAlways},
    {"movbe", 1, 0, kEcx, 22, kAlways},
    {"popcnt", 1, 0, kEcx, 23, kAlways},
    {"aes", 1, 0, kEcx, 25, kAlways},
    {"avx", 1, 0, kEcx, 28, kYmm},
    {"f16c", 1, 0, kEcx, 29, kYmm},
    {"fsgsbase", 7, 0, kEbx, 0, kAlways},
    {"bmi", 7, 0, kEbx, 3, kAlways},
    {"avx2", 7, 0, kEbx, 5, kYmm},
    {"bmi2", 7, 0, kEbx, 8, kAlways},
    {"avx512f", 7, 0, kEbx, 16, kZmm},
    {"avx512dq", 7, 0, kEbx, 17, kZmm},
    {"adx", 7, 0, kEbx, 19, kAlways},
    {"avx512ifma", 7, 0, kEbx, 21, kZmm},
    {"clflushopt", 7, 0, kEbx, 23, kAlways},
    {"clwb", 7, 0, kEbx, 24, kAlways},
    {"avx512cd", 7, 0, kEbx, 28, kZmm},
    {"sha", 7, 0, kEbx, 29, kAlways},
    {"avx512bw", 7, 0, kEbx, 30, kZmm},
    {"avx512vl", 7, 0, kEbx, 31, kZmm},
    {"avx512vbmi", 7, 0, kEcx, 1, kZmm},
    {"waitpkg", 7, 0, kEcx, 5, kAlways},
    {"avx512vbmi2", 7, 0, kEcx, 6, kZmm},
    {"shstk", 7, 0, kEcx, 7, kAlways},
    {"gfni", 7, 0, kEcx, 8, kAlways},
    {"vaes", 7, 0, kEcx, 9, kYmm},
    {"vpclmulqdq", 7, 0, kEcx, 10, kYmm},
    {"avx512vnni", 7, 0, kEcx, 11, kZmm},
    {"avx512bitalg", 7, 0, kEcx, 12, kZmm},
    {"avx512vpopcntdq", 7, 0, kEcx, 14, kZmm},
    {"rdpid", 7, 0, kEcx, 22, kAlways},
    {"cldemote", 7, 0, kEcx, 25, kAlways},
    {"movdiri", 7, 0, kEcx, 27, kAlways},
    {"movdir64b", 7, 0, kEcx, 28, kAlways},
    {"avx512vp2intersect", 7, 0, kEdx, 8, kZmm},
    {"serialize", 7, 0, kEdx, 14, kAlways},
    {"avx512fp16", 7, 0, kEdx, 23, kZmm},
    {"avxvnni", 7, 1, kEax, 4, kYmm},
    {"avx512bf16", 7, 1, kEax, 5, kZmm},
    {"avxifma", 7, 1, kEax, 23, kYmm},
    {"avxvnniint8", 7, 1, kEdx, 4, kYmm},
    {"avxneconvert", 7, 1, kEdx, 5, kYmm},
    {"avxvnniint16", 7, 1, kEdx, 10, kYmm},
    {"prefetchi", 7, 1, kEdx, 14, kAlways},
    {"lzcnt", 0x80000001, 0, kEcx, 5, kAlways},
    {"sse4a", 0x80000001, 0, kEcx, 6, kAlways},
    {"prfchw", 0x80000001, 0, kEcx, 8, kAlways},
    {"clzero", 0x80000008, 0, kEbx, 0, kAlways},
};
// Told apart from the rest only to name the CPU; never listed as a feature to use.
constexpr FeatureBit kNamingBits[] = {
    {"amx-bf16", 7, 0, kEdx, 22, kAlways},
    {"amx-fp16", 7, 1, kEax, 21, kAlways},
};

#if defined(__x86_64__)
bool is_set(const FeatureBit& f, uint64_t enabled_state) {
  uint32_t r[4] = {};
  if (__get_cpuid_count(f.leaf, f.subleaf, &r[kEax], &r[kEbx], &r[kEcx], &r[kEdx]) == 0)
    return false;
  return ((r[f.reg] >> f.bit) & 1) != 0 && (enabled_state & f.state) == f.state;
}

uint64_t enabled_register_state() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || ((c >> 27) & 1) == 0) return 0;  // no OSXSAVE
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}
#endif

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
  const uint64_t state = enabled_register_state();
  for (const FeatureBit& f : kFeatureBits) {
    if (is_set(f, state)) id.features.insert(f.name);
  }
  for (const FeatureBit& f : kNamingBits) {
    if (is_set(f, state)) id.features.insert(f.name);
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
  for (const FeatureBit& f : kFeatureBits)
    result.push_back((id.has(f.name) ? "+" : "-") + std::string(f.name));
  // Whoever writes 512-bit vectors means it: LLVM's tuning for these CPUs would split them.
  if (id.has("avx512f")) result.emplace_back("-prefer-256-bit");
  return result;
}

}  // namespace hone::target
