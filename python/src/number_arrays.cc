#include "number_arrays.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <limits>
#include <string>

#include "errors.h"

namespace hone::python {
namespace {

[[noreturn]] void refuse(const char* what, const std::string& found, const char* expected) {
  raise_input_error(std::string(what) + ": found " + found + ", expected " + expected);
}

// The object as an array of NumPy whose elements are of one of the kinds, such as "iu". One without
// elements may be of any kind and shape.
nb::object as_array(nb::handle object, const char* what, std::string_view kinds, long dimensions,
                    const char* expected) {
  nb::object array;
  try {
    array = nb::module_::import_("numpy").attr("asarray")(object);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_ValueError) && !error.matches(PyExc_TypeError)) throw;
    refuse(what, std::string("the Python type ") + nb::type_name(object.type()).c_str(), expected);
  }
  if (nb::cast<size_t>(array.attr("size")) == 0) return array;
  const auto kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
  if (kinds.find(kind) == std::string_view::npos)
    refuse(what, "elements of the type " + nb::cast<std::string>(array.attr("dtype").attr("name")),
           expected);
  if (const long found = nb::cast<long>(array.attr("ndim")); found != dimensions)
    refuse(what, "an array of " + std::to_string(found) + " dimensions", expected);
  return array;
}

constexpr int64_t kLeast = std::numeric_limits<int32_t>::min();
constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

// Whole numbers as those of points; what is too large stays too large.
std::vector<int32_t> narrow(const nb::object& array) {
  const auto wide = nb::cast<nb::ndarray<const int64_t, nb::c_contig, nb::device::cpu>>(
      array.attr("astype")("int64", nb::arg("order") = "C", nb::arg("copy") = false));
  std::vector<int32_t> values(wide.size());
  std::transform(wide.data(), wide.data() + wide.size(), values.begin(),
                 [](int64_t v) { return static_cast<int32_t>(std::clamp(v, kLeast, kMost)); });
  return values;
}

}  // namespace

PointRows points_from(nb::handle array, const char* what) {
  const nb::object rows =
      as_array(array, what, "iu", 2, "an array of whole numbers with one row for each point");
  PointRows points{.width = 1, .values = narrow(rows)};
  if (!points.values.empty()) points.width = nb::cast<size_t>(rows.attr("shape")[1]);
  return points;
}

std::vector<int32_t> point_from(nb::handle array, const char* what) {
  return narrow(as_array(array, what, "iu", 1, "one point, a row of whole numbers"));
}

std::vector<double> numbers_from(nb::handle array, const char* what) {
  const nb::object numbers = as_array(array, what, "fiu", 1, "an array of one number for each row");
  const auto values = nb::cast<nb::ndarray<const double, nb::c_contig, nb::device::cpu>>(
      numbers.attr("astype")("float64", nb::arg("order") = "C", nb::arg("copy") = false));
  return {values.data(), values.data() + values.size()};
}

}  // namespace hone::python
