// tensor/tensor.h - a dense row-major array on the host, 64-byte aligned; copies share the data.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hone/base/assert.h"
#include "hone/base/status.h"
#include "hone/tensor/dtype.h"

namespace hone {

using Shape = std::vector<int64_t>;
// A shape from outside is valid if no extent is negative and those that are not 0 multiply to at
// most kMaxElements, so that nothing computed from them overflows.
inline constexpr double kMaxElements = 1e11;
[[nodiscard]] bool is_valid(const Shape& shape);
[[nodiscard]] int64_t num_elements(const Shape& shape);
[[nodiscard]] std::string to_string(const Shape& shape);  // such as "[1, 3, 224, 224]"

class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, Shape shape);  // filled with zeros
  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] int64_t size() const { return num_elements(shape_); }  // number of elements
  [[nodiscard]] int64_t bytes() const { return size() * dtype_bytes(dtype_); }
  [[nodiscard]] void* data() { return data_.get(); }
  [[nodiscard]] const void* data() const { return data_.get(); }
  template <typename T>
  [[nodiscard]] std::span<T> as() {  // T must have the size of dtype
    HONE_ASSERT(static_cast<int64_t>(sizeof(T)) == dtype_bytes(dtype_),
                "span of another element size");
    return {static_cast<T*>(data_.get()), static_cast<size_t>(size())};
  }
  template <typename T>
  [[nodiscard]] std::span<const T> as() const {
    return const_cast<Tensor*>(this)->as<T>();
  }
  [[nodiscard]] double at(int64_t flat) const;  // element of any dtype, converted to double
  void set(int64_t flat, double value);
  [[nodiscard]] Tensor reshaped(Shape shape) const;  // tensor that shares the data
  [[nodiscard]] Tensor clone() const;

 private:
  DType dtype_ = DType::kF32;
  Shape shape_ = {0};
  std::shared_ptr<void> data_;
};

}  // namespace hone
