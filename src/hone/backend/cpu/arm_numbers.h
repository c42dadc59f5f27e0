// backend/cpu/arm_numbers.h - numbers as instructions of 64-bit Arm encode them.
#pragma once

#include <bit>
#include <cstdint>

namespace hone::backend::cpu {

// Returns the number that the immediate of a logical instruction encodes: an element of 2 to 64
// bits with a run of ones, rotated to the right and repeated (Arm Architecture Reference Manual,
// DecodeBitMasks).
[[nodiscard]] inline uint64_t logical_number(int64_t encoded, int bits) {
  const auto n = static_cast<unsigned>(encoded >> 12 & 1);
  const auto rotation = static_cast<unsigned>(encoded >> 6 & 63);
  const auto ones = static_cast<unsigned>(encoded & 63);
  const unsigned length = std::bit_width((n << 6) | (~ones & 63)) - 1;  // log2 of an element
  const unsigned size = 1U << length, levels = size - 1;
  const unsigned s = ones & levels, r = rotation & levels;
  uint64_t element = s + 1 >= 64 ? ~uint64_t{0} : (uint64_t{1} << (s + 1)) - 1;
  const uint64_t mask = size == 64 ? ~uint64_t{0} : (uint64_t{1} << size) - 1;
  if (r != 0) element = ((element >> r) | (element << (size - r))) & mask;
  uint64_t number = 0;
  for (unsigned at = 0; at < static_cast<unsigned>(bits); at += size) number |= element << at;
  return number;
}

}  // namespace hone::backend::cpu
