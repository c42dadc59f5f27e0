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

// Tells tensors of PyTorch from other arrays. PyTorch is not imported for that, which would take a
// second: without it no array is one.
class TensorType {
 public:
  TensorType();
  [[nodiscard]] bool holds(nb::handle array) const;

 private:
  nb::object type_;  // torch.Tensor, or nothing
};

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
  // With `is_bits`, the array has the bits of elements as u16. Without a shape, any of the rank of
  // the expected one is right.
  static BorrowedArray check(nb::ndarray<nb::ro> array, bool is_bits, const ModelTensor& expected,
                             const Shape* shape, const char* what);
  nb::ndarray<nb::ro> array_;
};

// Memory for one result, 64-byte aligned, which becomes an array without a copy. The description of
// the tensor has to outlive it.
class ResultArray {
 public:
  ResultArray(const ModelTensor& tensor, const Shape& shape);
  [[nodiscard]] void* data() const { return data_; }
  // Returns an array of this shape, whose elements lie from the start of the memory. It owns the
  // memory.
  [[nodiscard]] nb::object to_python(const Shape& shape, ArrayKind kind) const;

 private:
  const ModelTensor& tensor_;
  void* data_;
  nb::capsule owner_;
};

// Returns a copy of a Python array, or of what numpy.asarray() makes of it.
[[nodiscard]] Tensor copy_of(nb::handle array, const char* what);

}  // namespace hone::python
