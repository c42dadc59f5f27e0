#include "hone/target/machine_table.h"

namespace hone::target {
namespace {

constexpr int64_t kKi = 1024, kMi = 1024 * 1024;

// Vector FMA ports, latencies and loads: uops.info; A. Fog, "Instruction tables" and "The
// microarchitecture of Intel, AMD and VIA CPUs". L2 and L3 rates: sustained values of the same
// manuals and of Intel's optimization manual, rounded down. L3 of server parts, memory: estimates
// for one busy core at base clock.
constexpr MachineNumbers kTable[] = {
    {"x86-64", "sse2", 16, 16, false, false, 1, 8, 1, {16, 16, 8}, 4, {32 * kKi, 256 * kKi, 8 * kMi}, 4},
    {"x86-64-v2", "sse4", 16, 16, false, false, 1, 8, 2, {32, 16, 8}, 4, {32 * kKi, 256 * kKi, 8 * kMi}, 4},
    {"x86-64-v3", "avx2", 32, 16, false, false, 2, 4, 2, {64, 32, 12}, 5, {32 * kKi, 512 * kKi, 16 * kMi}, 8},
    {"x86-64-v4", "avx512", 64, 32, true, true, 2, 4, 2, {128, 48, 8}, 4, {32 * kKi, 1 * kMi, 32 * kMi}, 16},
    {"haswell", "avx2", 32, 16, false, false, 2, 5, 2, {64, 25, 12}, 5, {32 * kKi, 256 * kKi, 8 * kMi}, 4},
    {"broadwell", "avx2", 32, 16, false, false, 2, 5, 2, {64, 25, 12}, 5, {32 * kKi, 256 * kKi, 8 * kMi}, 4},
    {"skylake", "avx2", 32, 16, false, false, 2, 4, 2, {64, 32, 14}, 6, {32 * kKi, 256 * kKi, 8 * kMi}, 4},
    {"alderlake", "avx2", 32, 16, false, false, 2, 4, 3, {96, 40, 12}, 8, {48 * kKi, 1280 * kKi, 30 * kMi}, 8},
    {"raptorlake", "avx2", 32, 16, false, false, 2, 4, 3, {96, 40, 12}, 8, {48 * kKi, 2 * kMi, 36 * kMi}, 8},
    {"meteorlake", "avx2", 32, 16, false, false, 2, 4, 3, {96, 40, 12}, 8, {48 * kKi, 2 * kMi, 24 * kMi}, 6},
    {"arrowlake", "avx2", 32, 16, false, false, 2, 4, 3, {96, 40, 12}, 8, {48 * kKi, 3 * kMi, 36 * kMi}, 8},
    {"skylake-avx512", "avx512", 64, 32, true, true, 2, 4, 2, {128, 48, 8}, 4, {32 * kKi, 1 * kMi, 24 * kMi}, 16},
    {"cascadelake", "avx512", 64, 32, true, true, 2, 4, 2, {128, 48, 8}, 4, {32 * kKi, 1 * kMi, 36 * kMi}, 24},
    {"cooperlake", "avx512", 64, 32, true, true, 2, 4, 2, {128, 48, 8}, 4, {32 * kKi, 1 * kMi, 38 * kMi}, 28},
    {"icelake-client", "avx512", 64, 32, true, true, 1, 4, 2, {128, 48, 12}, 6, {48 * kKi, 512 * kKi, 8 * kMi}, 4},
    {"tigerlake", "avx512", 64, 32, true, true, 1, 4, 2, {128, 48, 12}, 6, {48 * kKi, 1280 * kKi, 12 * kMi}, 4},
    {"rocketlake", "avx512", 64, 32, true, true, 1, 4, 2, {128, 48, 12}, 6, {48 * kKi, 512 * kKi, 16 * kMi}, 8},
    {"icelake-server", "avx512", 64, 32, true, true, 2, 4, 2, {128, 48, 8}, 4, {48 * kKi, 1280 * kKi, 48 * kMi}, 32},
    {"sapphirerapids", "avx512", 64, 32, true, true, 2, 4, 2, {128, 48, 8}, 4, {48 * kKi, 2 * kMi, 96 * kMi}, 48},
    {"emeraldrapids", "avx512", 64, 32, true, true, 2, 4, 2, {128, 48, 8}, 4, {48 * kKi, 2 * kMi, 260 * kMi}, 48},
    {"graniterapids", "avx512", 64, 32, true, true, 2, 4, 2, {128, 48, 8}, 4, {48 * kKi, 2 * kMi, 432 * kMi}, 86},
    {"znver1", "avx2", 32, 16, false, false, 1, 5, 1, {32, 32, 16}, 6, {32 * kKi, 512 * kKi, 8 * kMi}, 4},
    {"znver2", "avx2", 32, 16, false, false, 2, 5, 2, {64, 32, 16}, 6, {32 * kKi, 512 * kKi, 16 * kMi}, 4},
    {"znver3", "avx2", 32, 16, false, false, 2, 4, 2, {64, 32, 16}, 7, {32 * kKi, 512 * kKi, 32 * kMi}, 8},
    // Zen 4 runs 512-bit operations in two halves: 1 FMA and 1 load a cycle.
    {"znver4", "avx512", 64, 32, true, true, 1, 4, 1, {64, 32, 16}, 8, {32 * kKi, 1 * kMi, 32 * kMi}, 8},
    {"znver5", "avx512", 64, 32, true, true, 2, 4, 2, {128, 64, 16}, 8, {48 * kKi, 1 * kMi, 32 * kMi}, 8},
    // Arm Neoverse N1 software optimization guide: two 128-bit FMA pipes, latency 4, two loads.
    {"neoverse-n1", "neon", 16, 32, false, false, 2, 4, 2, {32, 16, 8}, 6, {64 * kKi, 1 * kMi, 32 * kMi}, 32},
    {"generic", "neon", 16, 32, false, false, 2, 4, 2, {32, 16, 8}, 6, {64 * kKi, 512 * kKi, 4 * kMi}, 4},
};

}  // namespace

const MachineNumbers& machine_numbers(std::string_view cpu) {
  for (const MachineNumbers& m : kTable) {
    if (cpu == m.cpu) return m;
  }
  return machine_numbers("x86-64-v3");
}

}  // namespace hone::target
