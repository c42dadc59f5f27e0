#include "hone/tensor/half.h"

#include <bit>
#include <cmath>

namespace hone {

float half_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1FU, mantissa = bits & 0x3FFU;
  if (exponent == 0) {  // zero and denormals: mantissa * 2^-24
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 0x1F ? 0xFFU : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000U);
  const uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return sign | 0x7E00U;  // NaN
  if (magnitude >= 0x477FF000U) return sign | 0x7C00U;  // rounds to infinity
  if (magnitude < 0x38800000U) {                        // denormal: round value * 2^24
    const float scaled = std::nearbyint(std::ldexp(std::fabs(value), 24));
    return sign | static_cast<uint16_t>(scaled);
  }
  const uint32_t rounded = magnitude + 0xFFFU + ((magnitude >> 13) & 1U);
  return sign | static_cast<uint16_t>((rounded >> 13) - (112U << 10));
}

float bfloat_to_float(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t float_to_bfloat(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<uint16_t>((bits >> 16) | 0x40U);
  return static_cast<uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

}  // namespace hone
