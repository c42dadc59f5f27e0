#include "hone/tensor/half_tensor.h"

#include <array>
#include <bit>
#include <cmath>

#include "hone/tensor/half.h"

namespace hone {
namespace {

float float_of(DType half, uint16_t bits) {
  if (half == DType::kBF16) return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  static const auto* const kAll = [] {  // of each of the 65536 numbers of f16
    auto* all = new std::array<float, 1 << 16>();
    for (size_t i = 0; i < all->size(); ++i)
      (*all)[i] = static_cast<float>(f16_to_double(static_cast<uint16_t>(i)));
    return all;
  }();
  return (*kAll)[bits];
}

// Weights are many: normal numbers are rounded by their bits.
uint16_t half_of(DType half, float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  const int cut = half == DType::kF16 ? 23 - 10 : 16;
  const uint32_t bias = half == DType::kF16 ? (127 - 15) << 23 : 0;
  // From the least normal f16, and below what may become infinite; a carry runs into the exponent.
  const bool usual = half == DType::kF16 ? magnitude >= 0x38800000 && magnitude < 0x477FE000
                                         : magnitude < 0x7F000000;
  if (!usual) return half == DType::kF16 ? double_to_f16(value) : double_to_bf16(value);
  const uint32_t odd = magnitude >> cut & 1;
  const uint32_t rounded = (magnitude - bias + (1U << (cut - 1)) - 1 + odd) >> cut;
  return static_cast<uint16_t>((bits >> 16 & 0x8000) | rounded);
}

}  // namespace

Tensor widened(const Tensor& half) {
  HONE_ASSERT(is_half(half.dtype()), "only half types are widened");
  Tensor result(DType::kF32, half.shape());
  const std::span<const uint16_t> from = half.as<uint16_t>();
  const std::span<float> to = result.as<float>();
  for (size_t i = 0; i < from.size(); ++i) to[i] = float_of(half.dtype(), from[i]);
  return result;
}

std::optional<Tensor> narrowed(const Tensor& floats, DType half, bool exact) {
  HONE_ASSERT(is_half(half), "numbers are narrowed to half types");
  Tensor result(half, floats.shape());
  const std::span<const float> from = floats.as<float>();
  const std::span<uint16_t> to = result.as<uint16_t>();
  for (size_t i = 0; i < from.size(); ++i) {
    to[i] = half_of(half, from[i]);
    if (exact && float_of(half, to[i]) != from[i] && !std::isnan(from[i])) return std::nullopt;
  }
  return result;
}

}  // namespace hone
