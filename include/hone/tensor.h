// tensor.h - a dense row-major array on the host, 64-byte aligned; copies share the data.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hone/dtype.h"
#include "hone/export.h"
#include "hone/status.h"

namespace hone {

using Shape = std::vector<int64_t>;  // extents, the outermost first
[[nodiscard]] HONE_API int64_t num_elements(const Shape& shape);
[[nodiscard]] HONE_API std::string to_string(const Shape& shape);  // such as "[1, 3, 224, 224]"

class HONE_API Tensor {
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
    if (static_cast<int64_t>(sizeof(T)) != dtype_bytes(dtype_))
      stop_at_bug("span of another element size");
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
