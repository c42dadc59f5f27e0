// tensor/half.h - IEEE binary16 and bfloat16 to and from float, rounding to nearest even.
#pragma once

#include <cstdint>

namespace hone {

[[nodiscard]] float half_to_float(uint16_t bits);
[[nodiscard]] uint16_t float_to_half(float value);
[[nodiscard]] float bfloat_to_float(uint16_t bits);
[[nodiscard]] uint16_t float_to_bfloat(float value);

}  // namespace hone
