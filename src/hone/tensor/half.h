// tensor/half.h - 16-bit floats as bits: IEEE binary16 (f16) and the upper half of binary32 (bf16).
// Conversions round to nearest even; infinities, the sign of a zero, and NaN are kept.
#pragma once

#include <cstdint>

namespace hone {

[[nodiscard]] double f16_to_double(uint16_t bits);
[[nodiscard]] double bf16_to_double(uint16_t bits);
[[nodiscard]] uint16_t double_to_f16(double value);  // rounds once, not first to float
[[nodiscard]] uint16_t double_to_bf16(double value);

}  // namespace hone
