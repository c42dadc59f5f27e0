#include "hone/target/arm_id.h"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace hone::target {
namespace {

struct Part {
  uint64_t implementer, part;
  const char* name;
};
// Part numbers of Arm's technical reference manuals; Ampere's Altra reports Arm's N1.
constexpr Part kParts[] = {
    {0x41, 0xd03, "cortex-a53"}, {0x41, 0xd04, "cortex-a53"},  // A35: in order, too
    {0x41, 0xd05, "cortex-a53"},                               // A55: in order, too
    {0x41, 0xd07, "cortex-a72"},                               // A57: the same units
    {0x41, 0xd08, "cortex-a72"}, {0x41, 0xd09, "cortex-a72"},  // A73: the same width
    {0x41, 0xd0b, "cortex-a76"}, {0x41, 0xd0d, "cortex-a76"},  // A77, A78: the same vector units
    {0x41, 0xd41, "cortex-a76"}, {0x41, 0xd0c, "neoverse-n1"}, {0x41, 0xd40, "neoverse-v1"},
};

}  // namespace

uint64_t read_midr() {
  uint64_t midr = 0;
#if defined(__aarch64__)
  // The kernel reads it for programs where it says so (HWCAP_CPUID).
  if ((getauxval(AT_HWCAP) & HWCAP_CPUID) != 0) asm("mrs %0, midr_el1" : "=r"(midr));
#endif
  return midr;
}

std::string arm_cpu(uint64_t midr) {
  const uint64_t implementer = midr >> 24 & 0xff, part = midr >> 4 & 0xfff;
  for (const Part& known : kParts) {
    if (known.implementer == implementer && known.part == part) return known.name;
  }
  return "generic";
}

}  // namespace hone::target
