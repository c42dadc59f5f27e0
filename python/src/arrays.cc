#include "arrays.h"

#include <nanobind/stl/string.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <string_view>

#include "errors.h"

namespace hone::python {
namespace {

constexpr size_t kAlignment = 64;
constexpr const char* kOnDevice =
    "is in the memory of a device, expected an array in the host's memory";

nb::dlpack::dtype dlpack_type(DType dtype) {
  const auto bits = static_cast<uint8_t>(8 * dtype_bytes(dtype));
  using nb::dlpack::dtype_code;
  dtype_code code = dtype_code::Float;
  switch (dtype) {
    case DType::kBool: code = dtype_code::Bool; break;
    case DType::kU8:
    case DType::kU16:
    case DType::kU32:
    case DType::kU64: code = dtype_code::UInt; break;
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64: code = dtype_code::Int; break;
    case DType::kBF16: code = dtype_code::Bfloat; break;
    case DType::kF16:
    case DType::kF32:
    case DType::kF64: break;
  }
  return {static_cast<uint8_t>(code), bits, 1};
}

constexpr DType kTypes[] = {DType::kF32, DType::kU8,  DType::kI8,   DType::kU16, DType::kI16,
                            DType::kI32, DType::kI64, DType::kBool, DType::kF16, DType::kF64,
                            DType::kU32, DType::kU64, DType::kBF16};

std::optional<DType> type_of(nb::dlpack::dtype found) {
  for (const DType dtype : kTypes) {
    if (dlpack_type(dtype) == found) return dtype;
  }
  return std::nullopt;
}

std::string type_text(nb::dlpack::dtype found) {
  const std::optional<DType> dtype = type_of(found);
  return dtype ? "the type " + std::string(dtype_name(*dtype)) : "a type that Hone does not know";
}

Shape shape_of(const nb::ndarray<nb::ro>& array) {
  Shape shape;
  for (size_t d = 0; d < array.ndim(); ++d) shape.push_back(static_cast<int64_t>(array.shape(d)));
  return shape;
}

bool is_dense(const nb::ndarray<nb::ro>& array) {
  int64_t stride = 1;
  for (size_t d = array.ndim(); d-- > 0;) {
    if (array.shape(d) == 0) return true;
    if (array.shape(d) != 1 && array.stride(d) != stride) return false;
    stride *= static_cast<int64_t>(array.shape(d));
  }
  return true;
}

std::string name_of(const ModelTensor& tensor, const char* what) {
  return std::string(what) + " '" + tensor.name + "'";
}

}  // namespace

TensorType::TensorType() {
  const nb::str name("torch");
  const nb::object torch = nb::steal(PyImport_GetModule(name.ptr()));
  if (torch.is_valid()) type_ = torch.attr("Tensor");
}

bool TensorType::holds(nb::handle array) const {
  if (!type_.is_valid()) return false;
  const int is_tensor = PyObject_IsInstance(array.ptr(), type_.ptr());
  if (is_tensor < 0) throw nb::python_error();
  return is_tensor == 1;
}

Shape BorrowedArray::shape() const { return shape_of(array_); }

BorrowedArray BorrowedArray::check(nb::ndarray<nb::ro> array, bool is_bits,
                                   const ModelTensor& expected, const Shape* shape,
                                   const char* what) {
  const auto refuse = [&](const std::string& problem) {
    raise_input_error(name_of(expected, what) + " " + problem);
  };
  if (array.device_type() != nb::device::cpu::value) refuse(kOnDevice);
  if (array.dtype() != dlpack_type(is_bits ? DType::kU16 : expected.dtype))
    refuse("has " + type_text(array.dtype()) + ", expected " +
           std::string(dtype_name(expected.dtype)));
  const Shape found = shape_of(array);
  if (shape == nullptr && found.size() != expected.shape.size())
    refuse("has the shape " + to_string(found) + ", expected one of rank " +
           std::to_string(expected.shape.size()) + ", at most " + to_string(expected.shape));
  if (shape != nullptr && found != *shape)
    refuse("has the shape " + to_string(found) + ", expected " + to_string(*shape));
  if (!is_dense(array))
    refuse("is not dense in row-major order, expected an array as numpy.ascontiguousarray returns");
  BorrowedArray made;
  made.array_ = std::move(array);
  return made;
}

namespace {

// The bits of an array of ml_dtypes' bfloat16, a type that the array does not name by DLPack; else
// the array itself.
nb::object with_known_type(nb::handle array, DType expected) {
  if (expected != DType::kBF16 || !nb::hasattr(array, "dtype")) return nb::borrow(array);
  const nb::object dtype = array.attr("dtype");
  const auto type = nb::steal<nb::str>(PyObject_Str(dtype.ptr()));
  if (std::strcmp(type.c_str(), "bfloat16") != 0) return nb::borrow(array);
  return array.attr("view")("uint16");
}

// Returns whether an object says by DLPack that its memory is that of a device.
bool is_on_device(nb::handle array) {
  if (!nb::hasattr(array, "__dlpack_device__")) return false;
  try {
    const nb::object device = array.attr("__dlpack_device__")();
    int kind = 0;
    return nb::isinstance<nb::tuple>(device) && nb::len(device) == 2 &&
           nb::try_cast(device[0], kind) && kind != nb::device::cpu::value;
  } catch (const nb::python_error&) {
    return false;  // an array of nowhere, or a class instead of an array
  }
}

// Returns whether an array of NumPy has elements that DLPack cannot describe: texts, records,
// objects, or numbers in the byte order of another machine.
bool has_unknown_elements(nb::handle array) {
  const nb::object dtype = nb::getattr(array, "dtype", nb::none());
  const nb::object native = nb::getattr(dtype, "isnative", nb::none());
  std::string kind;
  if (!nb::try_cast(nb::getattr(dtype, "kind", nb::none()), kind)) return false;
  return native.ptr() == Py_False || std::string_view("OSUV").find(kind) != std::string_view::npos;
}

// Why an object cannot be read or written as an array.
[[noreturn]] void refuse_type(nb::handle array, const ModelTensor& expected, const char* what,
                              const char* wanted) {
  if (is_on_device(array)) raise_input_error(name_of(expected, what) + " " + kOnDevice);
  if (has_unknown_elements(array)) {
    const nb::object dtype = array.attr("dtype");
    const nb::str text(dtype);
    raise_input_error(name_of(expected, what) + " has elements of NumPy's type '" + text.c_str() +
                      "', expected " + std::string(dtype_name(expected.dtype)));
  }
  raise_input_error(name_of(expected, what) + " is of the Python type " +
                    nb::type_name(array.type()).c_str() + ", expected " + wanted);
}

}  // namespace

BorrowedArray BorrowedArray::to_read(nb::handle array, const ModelTensor& expected,
                                     const char* what) {
  const nb::object known = with_known_type(array, expected.dtype);
  nb::ndarray<nb::ro> found;
  if (!nb::try_cast(known, found, false))
    refuse_type(array, expected, what, "an array of NumPy, PyTorch or another library with DLPack");
  return check(std::move(found), known.ptr() != array.ptr(), expected,
               expected.dims.empty() ? &expected.shape : nullptr, what);
}

BorrowedArray BorrowedArray::to_write(nb::handle array, const ModelTensor& expected,
                                      const Shape& shape, const char* what) {
  const nb::object known = with_known_type(array, expected.dtype);
  nb::ndarray<> found;
  if (!nb::try_cast(known, found, false))
    refuse_type(array, expected, what, "an array that may be written");
  return check(nb::ndarray<nb::ro>(found), known.ptr() != array.ptr(), expected, &shape, what);
}

ResultArray::ResultArray(const ModelTensor& tensor, const Shape& shape) : tensor_(tensor) {
  const auto bytes = static_cast<size_t>(num_elements(shape) * dtype_bytes(tensor.dtype));
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  data_ = std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded);
  if (data_ == nullptr) throw std::bad_alloc();
  owner_ = nb::capsule(data_, [](void* data) noexcept { std::free(data); });
}

nb::object ResultArray::to_python(const Shape& shape, ArrayKind kind) const {
  std::vector<size_t> extents(shape.begin(), shape.end());
  if (kind == ArrayKind::kTorch) {
    return nb::cast(nb::ndarray<nb::pytorch>(data_, extents.size(), extents.data(), owner_, nullptr,
                                             dlpack_type(tensor_.dtype)));
  }
  const bool bf16 = tensor_.dtype == DType::kBF16;  // NumPy has no such type; ml_dtypes adds it
  const nb::object array =
      nb::cast(nb::ndarray<nb::numpy>(data_, extents.size(), extents.data(), owner_, nullptr,
                                      dlpack_type(bf16 ? DType::kU16 : tensor_.dtype)));
  if (!bf16) return array;
  try {
    return array.attr("view")(nb::module_::import_("ml_dtypes").attr("bfloat16"));
  } catch (nb::python_error&) {
    raise_input_error("output '" + tensor_.name +
                      "' has the type bf16, which NumPy lacks: install the "
                      "package ml_dtypes, or give the inputs as tensors of PyTorch");
  }
}

Tensor copy_of(nb::handle array, const char* what) {
  const nb::object dense =
      nb::module_::import_("numpy").attr("asarray")(array, nb::arg("order") = "C");
  nb::ndarray<nb::ro> found;
  const bool is_array = nb::try_cast(dense, found, false);
  const std::optional<DType> dtype = is_array ? type_of(found.dtype()) : std::nullopt;
  if (!dtype) raise_input_error(std::string(what) + ": expected an array of numbers");
  Tensor tensor(*dtype, shape_of(found));
  std::memcpy(tensor.data(), found.data(), static_cast<size_t>(tensor.bytes()));
  return tensor;
}

}  // namespace hone::python
