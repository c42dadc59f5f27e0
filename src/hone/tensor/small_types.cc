#include "hone/tensor/small_types.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "hone/base/assert.h"
#include "hone/tensor/dtype.h"

namespace hone {
namespace {

constexpr SmallFloat kE4M3FN = {3, 7, 0x80, 0x7E, 0x7F, 0x7F, false, true};
constexpr SmallFloat kE4M3FNUZ = {3, 8, 0x80, 0x7F, 0x80, 0x80, false, false};
constexpr SmallFloat kE5M2 = {2, 15, 0x80, 0x7B, 0x7C, 0x7E, true, true};
constexpr SmallFloat kE5M2FNUZ = {2, 16, 0x80, 0x7F, 0x80, 0x80, false, false};
// It has no NaN, which becomes -0, and always saturates.
constexpr SmallFloat kE2M1 = {1, 1, 0x08, 0x07, 0x07, 0x08, false, true};

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double decode(const SmallFloat& format, int code) {
  const int magnitude = code & (format.sign - 1);
  const double sign = (code & format.sign) != 0 ? -1 : 1;
  if (magnitude > format.largest)
    return format.has_inf && magnitude == format.overflow
               ? sign * std::numeric_limits<double>::infinity()
               : kNan;
  if (!format.signed_zero && code == format.nan) return kNan;
  const int exponent = magnitude >> format.mantissa;
  const int fraction = magnitude & ((1 << format.mantissa) - 1);
  const int whole = exponent == 0 ? fraction : (1 << format.mantissa) + fraction;
  return sign * std::ldexp(whole, std::max(exponent, 1) - format.bias - format.mantissa);
}

int encode(const SmallFloat& format, double value) {
  if (std::isnan(value)) return format.nan;
  const double magnitude = std::fabs(value);
  int code = format.largest;
  if (std::isfinite(value)) {
    int exponent = 0;
    std::frexp(magnitude, &exponent);  // magnitude in [2^(exponent-1), 2^exponent)
    const int scale = magnitude == 0 ? 1 - format.bias : std::max(exponent, 2 - format.bias) - 1;
    // The leading 1 of a normal number adds one to the biased exponent.
    const double units = std::nearbyint(std::ldexp(magnitude, format.mantissa - scale));
    const double bits = std::ldexp(scale - 1 + format.bias, format.mantissa) + units;
    code = static_cast<int>(std::min<double>(bits, format.largest));
  }
  if (code == 0 && !format.signed_zero) return 0;
  return std::signbit(value) ? code | format.sign : code;
}

int encode_power(double value) {
  if (!std::isfinite(value)) return 0xFF;
  if (value == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);
  return std::clamp(exponent + 126 + (fraction > 0.5 ? 1 : 0), 0, 0xFE);
}

bool has_sign(DType dtype) { return dtype == kI4 || dtype == kI2; }

// The value of the lowest bits of a byte as a small integer.
int integer_of(DType dtype, int byte) {
  const int bits = small_integer_bits(dtype), low = byte & ((1 << bits) - 1);
  return has_sign(dtype) && low >= 1 << (bits - 1) ? low - (1 << bits) : low;
}

struct Name {
  int code;
  std::string_view name;
};
constexpr Name kNames[] = {
    {0, "undefined"},       {1, "float"},         {2, "uint8"},           {3, "int8"},
    {4, "uint16"},          {5, "int16"},         {6, "int32"},           {7, "int64"},
    {8, "string"},          {9, "bool"},          {10, "float16"},        {11, "double"},
    {12, "uint32"},         {13, "uint64"},       {14, "complex64"},      {15, "complex128"},
    {16, "bfloat16"},       {17, "float8e4m3fn"}, {18, "float8e4m3fnuz"}, {19, "float8e5m2"},
    {20, "float8e5m2fnuz"}, {21, "uint4"},        {22, "int4"},           {23, "float4e2m1"},
    {24, "float8e8m0"},     {25, "uint2"},        {26, "int2"},           {27, "float6e2m3"},
    {28, "float6e3m2"},
};

}  // namespace

bool is_small(DType dtype) {
  return static_cast<int>(dtype) >= static_cast<int>(kF8E4M3FN) &&
         static_cast<int>(dtype) <= static_cast<int>(kI2);
}

const SmallFloat* small_float(DType dtype) {
  if (dtype == kF8E4M3FN) return &kE4M3FN;
  if (dtype == kF8E4M3FNUZ) return &kE4M3FNUZ;
  if (dtype == kF8E5M2) return &kE5M2;
  if (dtype == kF8E5M2FNUZ) return &kE5M2FNUZ;
  return dtype == kF4E2M1 ? &kE2M1 : nullptr;
}

bool is_small_float(DType dtype) { return small_float(dtype) != nullptr || dtype == kF8E8M0; }

int small_integer_bits(DType dtype) {
  if (dtype == kI4 || dtype == kU4) return 4;
  return dtype == kI2 || dtype == kU2 ? 2 : 0;
}

std::pair<int, int> small_integer_range(DType dtype) {
  const int numbers = 1 << small_integer_bits(dtype), low = has_sign(dtype) ? -numbers / 2 : 0;
  return {low, low + numbers - 1};
}

DType stored_type(DType dtype) {
  if (!is_small(dtype)) return dtype;
  return has_sign(dtype) ? DType::kI8 : DType::kU8;
}

double small_to_double(DType dtype, uint8_t code) {
  if (const SmallFloat* format = small_float(dtype)) return decode(*format, code);
  if (dtype == kF8E8M0) return code == 0xFF ? kNan : std::ldexp(1.0, code - 127);
  return integer_of(dtype, code);
}

uint8_t double_to_small(DType dtype, double value) {
  if (const SmallFloat* format = small_float(dtype))
    return static_cast<uint8_t>(encode(*format, value));
  if (dtype == kF8E8M0) return static_cast<uint8_t>(encode_power(value));
  if (std::isnan(value)) return 0;
  const auto [low, high] = small_integer_range(dtype);
  return static_cast<uint8_t>(static_cast<int>(std::clamp<double>(value, low, high)));
}

double small_step(DType dtype) {
  if (const SmallFloat* format = small_float(dtype)) return std::ldexp(1.0, -format->mantissa);
  return dtype == kF8E8M0 ? 0.5 : std::ldexp(1.0, 1 - small_integer_bits(dtype));
}

int elements_per_byte(DType dtype) {
  if (dtype == kF4E2M1) return 2;
  const int bits = small_integer_bits(dtype);
  return bits == 0 ? 1 : 8 / bits;
}

std::string packed(const Tensor& tensor) {
  const int count = elements_per_byte(tensor.dtype());
  const auto* from = static_cast<const uint8_t*>(tensor.data());
  if (count == 1) return {reinterpret_cast<const char*>(from), static_cast<size_t>(tensor.bytes())};
  const int bits = 8 / count;
  std::string bytes(static_cast<size_t>((tensor.size() + count - 1) / count), '\0');
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const int low = from[i] & ((1 << bits) - 1);
    char& byte = bytes[static_cast<size_t>(i / count)];
    byte = static_cast<char>(byte | low << (bits * static_cast<int>(i % count)));
  }
  return bytes;
}

Tensor unpacked(DType dtype, const Shape& shape, std::string_view bytes) {
  const int count = elements_per_byte(dtype);
  Tensor tensor(dtype, shape);
  HONE_ASSERT(static_cast<int64_t>(bytes.size()) == (tensor.size() + count - 1) / count,
              "the bytes hold the elements");
  const int bits = 8 / count;
  const auto to = tensor.as<uint8_t>();
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const auto byte = static_cast<uint8_t>(bytes[static_cast<size_t>(i / count)]);
    const int low = byte >> (bits * static_cast<int>(i % count)) & ((1 << bits) - 1);
    const bool whole = small_integer_bits(dtype) > 0;
    to[static_cast<size_t>(i)] = static_cast<uint8_t>(whole ? integer_of(dtype, low) : low);
  }
  return tensor;
}

std::optional<Tensor> as_type(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  if (!is_small(dtype) || (tensor.dtype() != DType::kU8 && tensor.dtype() != DType::kI8))
    return std::nullopt;
  Tensor result(dtype, tensor.shape());
  if (tensor.bytes() > 0)
    std::memcpy(result.data(), tensor.data(), static_cast<size_t>(tensor.bytes()));
  for (uint8_t& byte : result.as<uint8_t>()) {
    if (small_integer_bits(dtype) > 0) byte = static_cast<uint8_t>(integer_of(dtype, byte));
  }
  return result;
}

std::string onnx_type_text(int code) {
  for (const Name& known : kNames) {
    if (known.code == code) return fmt::format("{} ({})", known.name, code);
  }
  return fmt::format("{}, which ONNX does not have", code);
}

}  // namespace hone
