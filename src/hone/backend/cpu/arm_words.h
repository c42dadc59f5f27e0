// backend/cpu/arm_words.h - words that no stack has, for what is known of code of 64-bit Arm beside
// its registers and its stack (stack_words.h).
#pragma once

#include <cstdint>
#include <limits>

namespace hone::backend::cpu {

inline constexpr int64_t kWordBytes = 8;
// The flags at the end of a block.
inline constexpr int64_t kFlagsWord = std::numeric_limits<int64_t>::min() + kWordBytes;
// A word for each vector register has the number of active lanes that the register stands for, one
// for each general register the mask that was gathered into it. Both may be old: they only serve to
// guess.
inline constexpr int64_t kFirstLanes = kFlagsWord + kWordBytes;
inline constexpr int64_t kFirstMask = kFirstLanes + 32 * kWordBytes;
// Results between the steps of one instruction.
inline constexpr int64_t kFirstResult = kFirstMask + 64 * kWordBytes;

}  // namespace hone::backend::cpu
