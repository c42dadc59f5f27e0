// arrays.h - arrays of NumPy, PyTorch and whoever else knows DLPack, which share their memory.
#pragma once

#include <hone/model.h>
#include <hone/tensor.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>

namespace hone::python {

namespace nb = nanobind;

// The kind of arrays that a call returns: that of the arrays that it was given.
enum class ArrayKind { kNumpy, kTorch };
[[nodiscard]] ArrayKind kind_of(nb::handle array);

// An array of Python's whose memory is read, or written, in place. It keeps the array alive.
class BorrowedArray {
 public:
  // Raises InputError unless the array has this type and shape, is dense, row-major and in the
  // host's memory, and, if it is to be written, may be. A shape that varies may be any of that
  // rank. `what` names the array in messages.
  static BorrowedArray to_read(nb::handle array, const ModelTensor& expected, const char* what);
  static BorrowedArray to_write(nb::handle array, const ModelTensor& expected, const Shape& shape,
                                const char* what);
  [[nodiscard]] void* data() const { return const_cast<void*>(array_.data()); }
  [[nodiscard]] Shape shape() const;

 private:
  // Without a shape, any of the rank of the expected one is right.
  static BorrowedArray check(nb::ndarray<nb::ro> array, const ModelTensor& expected,
                             const Shape* shape, const char* what);
  nb::ndarray<nb::ro> array_;
};

// Memory for one result, 64-byte aligned, which becomes an array without a copy.
class ResultArray {
 public:
  ResultArray(const ModelTensor& tensor, const Shape& shape);
  [[nodiscard]] void* data() const { return data_; }
  // Returns an array of this shape, whose elements lie from the start of the memory. It owns the
  // memory.
  [[nodiscard]] nb::object to_python(const Shape& shape, ArrayKind kind) const;

 private:
  DType dtype_;
  std::string name_;
  void* data_;
  nb::capsule owner_;
};

// Returns a copy of a Python array, or of what numpy.asarray() makes of it.
[[nodiscard]] Tensor copy_of(nb::handle array, const char* what);

}  // namespace hone::python
