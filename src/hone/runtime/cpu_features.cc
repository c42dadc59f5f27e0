#include "hone/runtime/cpu_features.h"

#include <string.h>

#if defined(__x86_64__)
#include "hone/runtime/x86_features.h"
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace hone::runtime {

#if defined(__x86_64__)

FeatureState cpu_feature(const char* name) {
  for (const X86Feature& feature : kX86Features) {
    if ((feature.use & kChecked) == 0 || strcmp(feature.name, name) != 0) continue;
    return x86_has(feature, x86_saved_state()) ? FeatureState::kPresent : FeatureState::kAbsent;
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
