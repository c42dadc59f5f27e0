// backend/loading/relocate.h - writes addresses into code and data, as the kind of a relocation
// says (System V ABI for x86-64; ELF for the Arm 64-bit Architecture).
#pragma once

#include <elf.h>

#include <cstdint>

#include "hone/base/status.h"

namespace hone::backend {

struct Relocation {
  uint32_t type = 0;
  char* place = nullptr;  // in this process
  uint64_t target = 0;    // the address that the symbol has
  uint64_t jump = 0;      // an address near the place that leads to the symbol; for calls
  uint64_t slot = 0;      // the address of a pointer to the symbol
  int64_t addend = 0;
};

#if defined(__aarch64__)
inline constexpr uint16_t kOwnMachine = EM_AARCH64;
#else
inline constexpr uint16_t kOwnMachine = EM_X86_64;
#endif

// Returns how many bytes at the place a relocation of this type changes; 0 if it is not known.
[[nodiscard]] int relocated_bytes(uint32_t type);
// It is an error if the type is not known, or the address is too far away.
[[nodiscard]] Status relocate(const Relocation& relocation);

inline constexpr int64_t kJumpBytes = 16;
// Writes instructions that jump to an address anywhere.
void write_jump(char* place, uint64_t target);

}  // namespace hone::backend
