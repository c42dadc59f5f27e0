#include "hone/tensor/half.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hone {
namespace {

// A binary float of 16 bits: sign, exponent, `mantissa` explicit bits.
struct Format {
  int mantissa;
  int min_exponent;  // exponent of the least normal number
};
constexpr Format kF16 = {10, -14};
constexpr Format kBF16 = {7, -126};

constexpr int exponent_mask(Format format) { return (1 << (15 - format.mantissa)) - 1; }

double decode(Format format, uint16_t bits) {
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  const int exponent = (bits >> format.mantissa) & exponent_mask(format);
  const int fraction = bits & ((1 << format.mantissa) - 1);
  if (exponent == exponent_mask(format)) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, format.min_exponent - format.mantissa);
  return sign * std::ldexp((1 << format.mantissa) + fraction,
                           format.min_exponent + exponent - 1 - format.mantissa);
}

uint16_t encode(Format format, double value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const int infinity = exponent_mask(format) << format.mantissa;
  if (std::isnan(value))
    return static_cast<uint16_t>(sign | infinity | (1 << (format.mantissa - 1)));
  const double magnitude = std::fabs(value);
  if (std::isinf(value)) return static_cast<uint16_t>(sign | infinity);
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude in [2^(exponent-1), 2^exponent)
  const int scale =
      magnitude == 0 ? format.min_exponent : std::max(exponent - 1, format.min_exponent);
  // Units in the last place: at most 2^(mantissa+1), where the carry runs into the exponent as it
  // should.
  const auto units =
      static_cast<int>(std::nearbyint(std::ldexp(magnitude, format.mantissa - scale)));
  // A normal number's leading 1 adds one to the biased exponent, so counting starts one lower.
  const int64_t bits =
      (static_cast<int64_t>(scale - format.min_exponent) << format.mantissa) + units;
  return static_cast<uint16_t>(sign | std::min<int64_t>(bits, infinity));
}

}  // namespace

double f16_to_double(uint16_t bits) { return decode(kF16, bits); }
double bf16_to_double(uint16_t bits) { return decode(kBF16, bits); }
uint16_t double_to_f16(double value) { return encode(kF16, value); }
uint16_t double_to_bf16(double value) { return encode(kBF16, value); }

}  // namespace hone
