#include "hone/runtime/cpu_features.h"

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace hone::runtime {

#if defined(__x86_64__)
namespace {

enum Register { kEax, kEbx, kEcx, kEdx };
// Register state that the system must save and restore (XCR0).
enum Saved : uint64_t { kNone = 0, kAvx = 0x6, kAvx512 = 0xe6, kAmx = 0x60000 };

struct Feature {
  const char* name;
  uint32_t leaf;
  uint32_t subleaf;
  Register reg;
  int bit;
  Saved saved;
};

// Intel SDM volume 2, CPUID; the names are those of LLVM's X86.td.
constexpr Feature kFeatures[] = {
    {"cx16", 1, 0, kEcx, 13, kNone},
    {"sse3", 1, 0, kEcx, 0, kNone},
    {"pclmul", 1, 0, kEcx, 1, kNone},
    {"ssse3", 1, 0, kEcx, 9, kNone},
    {"fma", 1, 0, kEcx, 12, kAvx},
    {"sse4.1", 1, 0, kEcx, 19, kNone},
    {"sse4.2", 1, 0, kEcx, 20, kNone},
    {"crc32", 1, 0, kEcx, 20, kNone},
    {"movbe", 1, 0, kEcx, 22, kNone},
    {"popcnt", 1, 0, kEcx, 23, kNone},
    {"aes", 1, 0, kEcx, 25, kNone},
    {"xsave", 1, 0, kEcx, 26, kNone},
    {"avx", 1, 0, kEcx, 28, kAvx},
    {"f16c", 1, 0, kEcx, 29, kAvx},
    {"rdrnd", 1, 0, kEcx, 30, kNone},
    {"cx8", 1, 0, kEdx, 8, kNone},
    {"cmov", 1, 0, kEdx, 15, kNone},
    {"mmx", 1, 0, kEdx, 23, kNone},
    {"fxsr", 1, 0, kEdx, 24, kNone},
    {"sse", 1, 0, kEdx, 25, kNone},
    {"sse2", 1, 0, kEdx, 26, kNone},
    {"fsgsbase", 7, 0, kEbx, 0, kNone},
    {"bmi", 7, 0, kEbx, 3, kNone},
    {"avx2", 7, 0, kEbx, 5, kAvx},
    {"bmi2", 7, 0, kEbx, 8, kNone},
    {"invpcid", 7, 0, kEbx, 10, kNone},
    {"avx512f", 7, 0, kEbx, 16, kAvx512},
    {"avx512dq", 7, 0, kEbx, 17, kAvx512},
    {"rdseed", 7, 0, kEbx, 18, kNone},
    {"adx", 7, 0, kEbx, 19, kNone},
    {"avx512ifma", 7, 0, kEbx, 21, kAvx512},
    {"clflushopt", 7, 0, kEbx, 23, kNone},
    {"clwb", 7, 0, kEbx, 24, kNone},
    {"avx512cd", 7, 0, kEbx, 28, kAvx512},
    {"sha", 7, 0, kEbx, 29, kNone},
    {"avx512bw", 7, 0, kEbx, 30, kAvx512},
    {"avx512vl", 7, 0, kEbx, 31, kAvx512},
    {"avx512vbmi", 7, 0, kEcx, 1, kAvx512},
    {"pku", 7, 0, kEcx, 4, kNone},
    {"waitpkg", 7, 0, kEcx, 5, kNone},
    {"avx512vbmi2", 7, 0, kEcx, 6, kAvx512},
    {"gfni", 7, 0, kEcx, 8, kNone},
    {"vaes", 7, 0, kEcx, 9, kAvx},
    {"vpclmulqdq", 7, 0, kEcx, 10, kAvx},
    {"avx512vnni", 7, 0, kEcx, 11, kAvx512},
    {"avx512bitalg", 7, 0, kEcx, 12, kAvx512},
    {"avx512vpopcntdq", 7, 0, kEcx, 14, kAvx512},
    {"rdpid", 7, 0, kEcx, 22, kNone},
    {"cldemote", 7, 0, kEcx, 25, kNone},
    {"movdiri", 7, 0, kEcx, 27, kNone},
    {"movdir64b", 7, 0, kEcx, 28, kNone},
    {"avx512vp2intersect", 7, 0, kEdx, 8, kAvx512},
    {"serialize", 7, 0, kEdx, 14, kNone},
    {"amx-bf16", 7, 0, kEdx, 22, kAmx},
    {"avx512fp16", 7, 0, kEdx, 23, kAvx512},
    {"amx-tile", 7, 0, kEdx, 24, kAmx},
    {"amx-int8", 7, 0, kEdx, 25, kAmx},
    {"avxvnni", 7, 1, kEax, 4, kAvx},
    {"avx512bf16", 7, 1, kEax, 5, kAvx512},
    {"amx-fp16", 7, 1, kEax, 21, kAmx},
    {"avxifma", 7, 1, kEax, 23, kAvx},
    {"avxvnniint8", 7, 1, kEdx, 4, kAvx},
    {"avxneconvert", 7, 1, kEdx, 5, kAvx},
    {"xsaveopt", 13, 1, kEax, 0, kNone},
    {"xsavec", 13, 1, kEax, 1, kNone},
    {"xsaves", 13, 1, kEax, 3, kNone},
    {"sahf", 0x80000001, 0, kEcx, 0, kNone},
    {"lzcnt", 0x80000001, 0, kEcx, 5, kNone},
    {"sse4a", 0x80000001, 0, kEcx, 6, kNone},
    {"prfchw", 0x80000001, 0, kEcx, 8, kNone},
    {"64bit", 0x80000001, 0, kEdx, 29, kNone},
    {"wbnoinvd", 0x80000008, 0, kEbx, 9, kNone},
};

uint64_t saved_state() {
  uint32_t regs[4];
  constexpr uint32_t kOsxsave = 1u << 27;
  if (__get_cpuid(1, &regs[0], &regs[1], &regs[2], &regs[3]) == 0) return 0;
  if ((regs[2] & kOsxsave) == 0) return 0;
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}

}  // namespace

FeatureState cpu_feature(const char* name) {
  for (const Feature& feature : kFeatures) {
    if (strcmp(feature.name, name) != 0) continue;
    uint32_t regs[4] = {};
    if (__get_cpuid_count(feature.leaf, feature.subleaf, &regs[0], &regs[1], &regs[2], &regs[3]) ==
        0)
      return FeatureState::kAbsent;
    if (((regs[feature.reg] >> feature.bit) & 1) == 0) return FeatureState::kAbsent;
    if ((saved_state() & feature.saved) != feature.saved) return FeatureState::kAbsent;
    return FeatureState::kPresent;
  }
  return FeatureState::kUnknown;
}

#elif defined(__aarch64__)
namespace {

struct Feature {
  const char* name;
  unsigned long type;
  int bit;
};

// Linux's arch/arm64/include/uapi/asm/hwcap.h; the names are those of LLVM's AArch64.td.
constexpr Feature kFeatures[] = {
    {"fp-armv8", AT_HWCAP, 0}, {"neon", AT_HWCAP, 1},     {"aes", AT_HWCAP, 3},
    {"sha2", AT_HWCAP, 6},     {"crc", AT_HWCAP, 7},      {"lse", AT_HWCAP, 8},
    {"fullfp16", AT_HWCAP, 9}, {"rdm", AT_HWCAP, 12},     {"dotprod", AT_HWCAP, 20},
    {"sve", AT_HWCAP, 22},     {"fp16fml", AT_HWCAP, 23}, {"sve2", AT_HWCAP2, 1},
    {"i8mm", AT_HWCAP2, 13},   {"bf16", AT_HWCAP2, 14},
};

}  // namespace

FeatureState cpu_feature(const char* name) {
  for (const Feature& feature : kFeatures) {
    if (strcmp(feature.name, name) != 0) continue;
    const bool present = ((getauxval(feature.type) >> feature.bit) & 1) != 0;
    return present ? FeatureState::kPresent : FeatureState::kAbsent;
  }
  return FeatureState::kUnknown;
}

#else
#error "the runtime knows x86-64 and AArch64"
#endif

}  // namespace hone::runtime
