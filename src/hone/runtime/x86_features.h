// runtime/x86_features.h - where the CPUID instruction of an x86-64 reports which feature, by
// LLVM's names (X86.td). The runtime checks by it that a CPU can run a model, and target detection
// describes the host by it. It needs no C++ library.
#pragma once

#include <stdint.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace hone::runtime {

enum X86Register { kEax, kEbx, kEcx, kEdx };
// Register state that the system must save before a feature may be used (bits of XCR0).
enum X86Saved : uint64_t { kNone = 0, kYmm = 0x6, kZmm = 0xe6, kAmx = 0x60000 };
// Who reads a feature.
enum X86Use : uint8_t {
  kChecked = 1,  // cpu_feature() knows it: a model may ask for it
  kWritten = 2,  // a description of the host says whether it is there (target/cpuid.h)
  kBoth = 3,
};

struct X86Feature {
  const char* name;
  uint32_t leaf, subleaf;
  X86Register reg;
  int bit;
  X86Saved saved;
  X86Use use;
};

// Intel SDM volume 2A, CPUID; AMD APM volume 3, appendix E. AMX is not written: using it needs a
// permission from the system that generated code does not ask for.
inline constexpr X86Feature kX86Features[] = {
    {"sse3", 1, 0, kEcx, 0, kNone, kBoth},
    {"pclmul", 1, 0, kEcx, 1, kNone, kBoth},
    {"ssse3", 1, 0, kEcx, 9, kNone, kBoth},
    {"fma", 1, 0, kEcx, 12, kYmm, kBoth},
    {"cx16", 1, 0, kEcx, 13, kNone, kBoth},
    {"sse4.1", 1, 0, kEcx, 19, kNone, kBoth},
    {"sse4.2", 1, 0, kEcx, 20, kNone, kBoth},
    {"crc32", 1, 0, kEcx, 20, kNone, kChecked},
    {"movbe", 1, 0, kEcx, 22, kNone, kBoth},
    {"popcnt", 1, 0, kEcx, 23, kNone, kBoth},
    {"aes", 1, 0, kEcx, 25, kNone, kBoth},
    {"xsave", 1, 0, kEcx, 26, kNone, kChecked},
    {"avx", 1, 0, kEcx, 28, kYmm, kBoth},
    {"f16c", 1, 0, kEcx, 29, kYmm, kBoth},
    {"rdrnd", 1, 0, kEcx, 30, kNone, kChecked},
    {"cx8", 1, 0, kEdx, 8, kNone, kChecked},
    {"cmov", 1, 0, kEdx, 15, kNone, kChecked},
    {"mmx", 1, 0, kEdx, 23, kNone, kChecked},
    {"fxsr", 1, 0, kEdx, 24, kNone, kChecked},
    {"sse", 1, 0, kEdx, 25, kNone, kChecked},
    {"sse2", 1, 0, kEdx, 26, kNone, kChecked},
    {"fsgsbase", 7, 0, kEbx, 0, kNone, kBoth},
    {"bmi", 7, 0, kEbx, 3, kNone, kBoth},
    {"avx2", 7, 0, kEbx, 5, kYmm, kBoth},
    {"bmi2", 7, 0, kEbx, 8, kNone, kBoth},
    {"invpcid", 7, 0, kEbx, 10, kNone, kChecked},
    {"avx512f", 7, 0, kEbx, 16, kZmm, kBoth},
    {"avx512dq", 7, 0, kEbx, 17, kZmm, kBoth},
    {"rdseed", 7, 0, kEbx, 18, kNone, kChecked},
    {"adx", 7, 0, kEbx, 19, kNone, kBoth},
    {"avx512ifma", 7, 0, kEbx, 21, kZmm, kBoth},
    {"clflushopt", 7, 0, kEbx, 23, kNone, kBoth},
    {"clwb", 7, 0, kEbx, 24, kNone, kBoth},
    {"avx512cd", 7, 0, kEbx, 28, kZmm, kBoth},
    {"sha", 7, 0, kEbx, 29, kNone, kBoth},
    {"avx512bw", 7, 0, kEbx, 30, kZmm, kBoth},
    {"avx512vl", 7, 0, kEbx, 31, kZmm, kBoth},
    {"avx512vbmi", 7, 0, kEcx, 1, kZmm, kBoth},
    {"pku", 7, 0, kEcx, 4, kNone, kChecked},
    {"waitpkg", 7, 0, kEcx, 5, kNone, kBoth},
    {"avx512vbmi2", 7, 0, kEcx, 6, kZmm, kBoth},
    {"shstk", 7, 0, kEcx, 7, kNone, kWritten},
    {"gfni", 7, 0, kEcx, 8, kNone, kBoth},
    {"vaes", 7, 0, kEcx, 9, kYmm, kBoth},
    {"vpclmulqdq", 7, 0, kEcx, 10, kYmm, kBoth},
    {"avx512vnni", 7, 0, kEcx, 11, kZmm, kBoth},
    {"avx512bitalg", 7, 0, kEcx, 12, kZmm, kBoth},
    {"avx512vpopcntdq", 7, 0, kEcx, 14, kZmm, kBoth},
    {"rdpid", 7, 0, kEcx, 22, kNone, kBoth},
    {"cldemote", 7, 0, kEcx, 25, kNone, kBoth},
    {"movdiri", 7, 0, kEcx, 27, kNone, kBoth},
    {"movdir64b", 7, 0, kEcx, 28, kNone, kBoth},
    {"avx512vp2intersect", 7, 0, kEdx, 8, kZmm, kBoth},
    {"serialize", 7, 0, kEdx, 14, kNone, kBoth},
    {"amx-bf16", 7, 0, kEdx, 22, kAmx, kChecked},
    {"avx512fp16", 7, 0, kEdx, 23, kZmm, kBoth},
    {"amx-tile", 7, 0, kEdx, 24, kAmx, kChecked},
    {"amx-int8", 7, 0, kEdx, 25, kAmx, kChecked},
    {"avxvnni", 7, 1, kEax, 4, kYmm, kBoth},
    {"avx512bf16", 7, 1, kEax, 5, kZmm, kBoth},
    {"amx-fp16", 7, 1, kEax, 21, kAmx, kChecked},
    {"avxifma", 7, 1, kEax, 23, kYmm, kBoth},
    {"avxvnniint8", 7, 1, kEdx, 4, kYmm, kBoth},
    {"avxneconvert", 7, 1, kEdx, 5, kYmm, kBoth},
    {"avxvnniint16", 7, 1, kEdx, 10, kYmm, kWritten},
    {"prefetchi", 7, 1, kEdx, 14, kNone, kWritten},
    {"xsaveopt", 13, 1, kEax, 0, kNone, kChecked},
    {"xsavec", 13, 1, kEax, 1, kNone, kChecked},
    {"xsaves", 13, 1, kEax, 3, kNone, kChecked},
    {"sahf", 0x80000001, 0, kEcx, 0, kNone, kChecked},
    {"lzcnt", 0x80000001, 0, kEcx, 5, kNone, kBoth},
    {"sse4a", 0x80000001, 0, kEcx, 6, kNone, kBoth},
    {"prfchw", 0x80000001, 0, kEcx, 8, kNone, kBoth},
    {"64bit", 0x80000001, 0, kEdx, 29, kNone, kChecked},
    {"clzero", 0x80000008, 0, kEbx, 0, kNone, kWritten},
    {"wbnoinvd", 0x80000008, 0, kEbx, 9, kNone, kChecked},
};

#if defined(__x86_64__)
// Returns XCR0: the register state that the system saves.
inline uint64_t x86_saved_state() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  constexpr uint32_t kOsxsave = 1U << 27;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kOsxsave) == 0) return 0;
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

// Returns whether the CPU reports the feature, whatever the system saves.
inline bool x86_reports(const X86Feature& feature) {
  uint32_t regs[4] = {};
  return __get_cpuid_count(feature.leaf, feature.subleaf, &regs[kEax], &regs[kEbx], &regs[kEcx],
                           &regs[kEdx]) != 0 &&
         ((regs[feature.reg] >> feature.bit) & 1) != 0;
}

// Returns whether the feature may be used. `saved` is x86_saved_state().
inline bool x86_has(const X86Feature& feature, uint64_t saved) {
  return x86_reports(feature) && (saved & feature.saved) == feature.saved;
}
#endif

}  // namespace hone::runtime
