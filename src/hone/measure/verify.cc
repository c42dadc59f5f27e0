#include "hone/measure/verify.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "hone/tensor/half.h"

namespace hone::measure {
namespace {

template <typename T>
double as_double(const void* data, int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + i * static_cast<int64_t>(sizeof(T)),
              sizeof(T));
  return static_cast<double>(value);
}

double element(const void* data, DType dtype, int64_t i) {
  switch (dtype) {
    case DType::kF32: return as_double<float>(data, i);
    case DType::kF64: return as_double<double>(data, i);
    case DType::kU8:
    case DType::kBool: return as_double<uint8_t>(data, i);
    case DType::kI8: return as_double<int8_t>(data, i);
    case DType::kU16: return as_double<uint16_t>(data, i);
    case DType::kI16: return as_double<int16_t>(data, i);
    case DType::kU32: return as_double<uint32_t>(data, i);
    case DType::kI32: return as_double<int32_t>(data, i);
    case DType::kU64: return as_double<uint64_t>(data, i);
    case DType::kI64: return as_double<int64_t>(data, i);
    case DType::kF16: return f16_to_double(static_cast<uint16_t>(as_double<uint16_t>(data, i)));
    case DType::kBF16: return bf16_to_double(static_cast<uint16_t>(as_double<uint16_t>(data, i)));
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

double relative_error(const void* data, DType dtype, std::span<const int64_t> places,
                      std::span<const double> values) {
  double difference = 0, greatest = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double found = element(data, dtype, places.empty() ? static_cast<int64_t>(i) : places[i]);
    const double expected = values[i];
    if (std::isfinite(expected)) greatest = std::max(greatest, std::abs(expected));
    if (found == expected || (std::isnan(found) && std::isnan(expected))) continue;
    if (!std::isfinite(found) || !std::isfinite(expected))
      return std::numeric_limits<double>::infinity();
    difference = std::max(difference, std::abs(found - expected));
  }
  return greatest > 0 ? difference / greatest : difference;
}

}  // namespace hone::measure
