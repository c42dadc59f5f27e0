#include "hone/tensor/tensor.h"

#include <cstdlib>
#include <cstring>

#include "hone/tensor/half.h"

namespace hone {

int64_t num_elements(const Shape& shape) {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  return n;
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

Tensor::Tensor(DType dtype, Shape shape) : dtype_(dtype), shape_(std::move(shape)) {
  constexpr size_t kAlign = 64;
  const size_t size = (static_cast<size_t>(bytes()) + kAlign - 1) / kAlign * kAlign + kAlign;
  void* memory = std::aligned_alloc(kAlign, size);
  HONE_ASSERT(memory != nullptr, "out of memory");
  std::memset(memory, 0, size);
  data_ = std::shared_ptr<void>(memory, std::free);
}

double Tensor::at(int64_t flat) const {
  HONE_ASSERT(flat >= 0 && flat < size(), "element of a tensor");
  const void* p = data_.get();
  switch (dtype_) {
    case DType::kF32: return static_cast<const float*>(p)[flat];
    case DType::kF64: return static_cast<const double*>(p)[flat];
    case DType::kF16: return half_to_float(static_cast<const uint16_t*>(p)[flat]);
    case DType::kBF16: return bfloat_to_float(static_cast<const uint16_t*>(p)[flat]);
    case DType::kU8: return static_cast<const uint8_t*>(p)[flat];
    case DType::kI8: return static_cast<const int8_t*>(p)[flat];
    case DType::kU16: return static_cast<const uint16_t*>(p)[flat];
    case DType::kI16: return static_cast<const int16_t*>(p)[flat];
    case DType::kI32: return static_cast<const int32_t*>(p)[flat];
    case DType::kU32: return static_cast<const uint32_t*>(p)[flat];
    case DType::kI64: return static_cast<double>(static_cast<const int64_t*>(p)[flat]);
    case DType::kU64: return static_cast<double>(static_cast<const uint64_t*>(p)[flat]);
    case DType::kBool: return static_cast<const uint8_t*>(p)[flat] != 0 ? 1 : 0;
  }
  return 0;
}

void Tensor::set(int64_t flat, double value) {
  HONE_ASSERT(flat >= 0 && flat < size(), "element of a tensor");
  void* p = data_.get();
  switch (dtype_) {
    case DType::kF32: static_cast<float*>(p)[flat] = static_cast<float>(value); break;
    case DType::kF64: static_cast<double*>(p)[flat] = value; break;
    case DType::kF16: static_cast<uint16_t*>(p)[flat] = float_to_half(static_cast<float>(value)); break;
    case DType::kBF16: static_cast<uint16_t*>(p)[flat] = float_to_bfloat(static_cast<float>(value)); break;
    case DType::kU8: static_cast<uint8_t*>(p)[flat] = static_cast<uint8_t>(value); break;
    case DType::kI8: static_cast<int8_t*>(p)[flat] = static_cast<int8_t>(value); break;
    case DType::kU16: static_cast<uint16_t*>(p)[flat] = static_cast<uint16_t>(value); break;
    case DType::kI16: static_cast<int16_t*>(p)[flat] = static_cast<int16_t>(value); break;
    case DType::kI32: static_cast<int32_t*>(p)[flat] = static_cast<int32_t>(value); break;
    case DType::kU32: static_cast<uint32_t*>(p)[flat] = static_cast<uint32_t>(value); break;
    case DType::kI64: static_cast<int64_t*>(p)[flat] = static_cast<int64_t>(value); break;
    case DType::kU64: static_cast<uint64_t*>(p)[flat] = static_cast<uint64_t>(value); break;
    case DType::kBool: static_cast<uint8_t*>(p)[flat] = value != 0 ? 1 : 0; break;
  }
}

Tensor Tensor::reshaped(Shape shape) const {
  HONE_ASSERT(num_elements(shape) == size(), "a reshape keeps the number of elements");
  Tensor other = *this;
  other.shape_ = std::move(shape);
  return other;
}

Tensor Tensor::clone() const {
  Tensor copy(dtype_, shape_);
  std::memcpy(copy.data(), data(), static_cast<size_t>(bytes()));
  return copy;
}

}  // namespace hone
