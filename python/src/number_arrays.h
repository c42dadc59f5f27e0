// number_arrays.h - vectors of numbers as arrays of NumPy without a copy, and points of spaces.
#pragma once

#include <hone/point_rows.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace hone::python {

namespace nb = nanobind;

template <typename T>
using Numbers = nb::ndarray<nb::numpy, T, nb::ndim<1>>;
template <typename T>
using Rows = nb::ndarray<nb::numpy, T, nb::ndim<2>>;

// Returns an array of this type and shape that owns the numbers.
template <typename Array, typename T>
Array owning_array(std::vector<T> values, std::initializer_list<size_t> shape) {
  auto owned = std::make_unique<std::vector<T>>(std::move(values));
  const nb::capsule owner(owned.get(),
                          [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return Array(owned.release()->data(), shape, owner);
}
template <typename T>
Numbers<T> to_numbers(std::vector<T> values) {
  const size_t size = values.size();
  return owning_array<Numbers<T>>(std::move(values), {size});
}
inline Numbers<bool> to_flags(std::vector<uint8_t> values) {
  const size_t size = values.size();
  return owning_array<Numbers<bool>>(std::move(values), {size});
}
template <typename T>
Rows<T> to_rows(std::vector<T> values, size_t rows, size_t width) {
  return owning_array<Rows<T>>(std::move(values), {rows, width});
}
inline Rows<int32_t> to_rows(PointRows points) {
  const size_t rows = points.size(), width = points.width;
  return to_rows(std::move(points.values), rows, width);
}

// Returns the points of an array of whole numbers, or of what numpy.asarray() makes one of, with
// two dimensions; or with one for a single point. Anything else raises InputError, which begins
// with `what`.
PointRows points_from(nb::handle array, const char* what);
std::vector<int32_t> point_from(nb::handle array, const char* what);
// Returns the numbers of an array of one dimension, likewise.
std::vector<double> numbers_from(nb::handle array, const char* what);

}  // namespace hone::python
