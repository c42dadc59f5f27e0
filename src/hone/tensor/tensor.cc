#include "hone/tensor/tensor.h"

#include <fmt/ranges.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "hone/base/allocation.h"
#include "hone/base/round_up.h"
#include "hone/tensor/half.h"
#include "hone/tensor/max_rank.h"
#include "hone/tensor/small_types.h"

namespace hone {
namespace {

// Elements that C++ has no type for, or none that may hold any byte.
struct Bool {
  uint8_t byte;
  explicit operator double() const { return byte != 0 ? 1 : 0; }
  static Bool from(double value) { return {static_cast<uint8_t>(value != 0)}; }
};
template <double (*decode)(uint16_t), uint16_t (*encode)(double)>
struct Half {
  uint16_t bits;
  explicit operator double() const { return decode(bits); }
  static Half from(double value) { return {encode(value)}; }
};
using F16 = Half<f16_to_double, double_to_f16>;
using BF16 = Half<bf16_to_double, double_to_bf16>;

// Calls f with a pointer to the elements.
template <typename F>
auto visit(DType dtype, void* data, F f) {
  switch (dtype) {
    case DType::kF32: return f(static_cast<float*>(data));
    case DType::kF64: return f(static_cast<double*>(data));
    case DType::kF16: return f(static_cast<F16*>(data));
    case DType::kBF16: return f(static_cast<BF16*>(data));
    case DType::kBool: return f(static_cast<Bool*>(data));
    case DType::kU8: return f(static_cast<uint8_t*>(data));
    case DType::kI8: return f(static_cast<int8_t*>(data));
    case DType::kU16: return f(static_cast<uint16_t*>(data));
    case DType::kI16: return f(static_cast<int16_t*>(data));
    case DType::kU32: return f(static_cast<uint32_t*>(data));
    case DType::kI32: return f(static_cast<int32_t*>(data));
    case DType::kU64: return f(static_cast<uint64_t*>(data));
    case DType::kI64: return f(static_cast<int64_t*>(data));
  }
  HONE_ASSERT(false, "a tensor has a known element type");
}

// Integers saturate; NaN becomes 0.
template <typename T>
T from_double(double value) {
  if constexpr (std::is_class_v<T>) {
    return T::from(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else {
    using Limits = std::numeric_limits<T>;
    if (std::isnan(value)) return 0;
    if (value <= static_cast<double>(Limits::min())) return Limits::min();
    if (value >= static_cast<double>(Limits::max())) return Limits::max();
    return static_cast<T>(value);
  }
}

}  // namespace

bool is_valid(const Shape& shape) {
  if (shape.size() > kMaxRank) return false;
  double elements = 1;
  for (const int64_t extent : shape) {
    if (extent < 0) return false;
    if (extent > 0) elements *= static_cast<double>(extent);
  }
  return elements <= kMaxElements;
}

int64_t num_elements(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t length : shape) {
    HONE_ASSERT(length >= 0, "a shape has no negative length");
    HONE_ASSERT(!__builtin_mul_overflow(count, length, &count),
                "the elements of a shape fit in 64 bits");
  }
  return count;
}

std::string to_string(const Shape& shape) {
  if (shape.size() <= kMaxRank) return fmt::format("[{}]", fmt::join(shape, ", "));
  return fmt::format("[{}, ... {} extents]", fmt::join(shape.begin(), shape.begin() + 4, ", "),
                     shape.size());
}

Tensor::Tensor(DType dtype, Shape shape) : dtype_(dtype), shape_(std::move(shape)) {
  void* const memory = allocate_aligned(bytes());
  std::memset(memory, 0, static_cast<size_t>(round_up(bytes(), kDataAlignment)));
  data_ = std::shared_ptr<void>(memory, std::free);
}

double Tensor::at(int64_t flat) const {
  HONE_ASSERT(flat >= 0 && flat < size(), "an element inside the tensor");
  if (is_small(dtype_)) return small_to_double(dtype_, as<uint8_t>()[static_cast<size_t>(flat)]);
  return visit(dtype_, data_.get(),
               [flat](const auto* data) { return static_cast<double>(data[flat]); });
}

void Tensor::set(int64_t flat, double value) {
  HONE_ASSERT(flat >= 0 && flat < size(), "an element inside the tensor");
  if (is_small(dtype_)) {
    as<uint8_t>()[static_cast<size_t>(flat)] = double_to_small(dtype_, value);
    return;
  }
  visit(dtype_, data_.get(), [=]<typename T>(T* data) { data[flat] = from_double<T>(value); });
}

Tensor Tensor::reshaped(Shape shape) const {
  HONE_ASSERT(num_elements(shape) == size(), "a reshape keeps the number of elements");
  Tensor result = *this;
  result.shape_ = std::move(shape);
  return result;
}

Tensor Tensor::clone() const {
  Tensor result(dtype_, shape_);
  if (bytes() > 0) std::memcpy(result.data(), data(), static_cast<size_t>(bytes()));
  return result;
}

}  // namespace hone
