// dtype.h - element types. The numeric values are ONNX's TensorProto.DataType codes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "hone/export.h"

namespace hone {

enum class DType : uint8_t {
  kF32 = 1,
  kU8 = 2,
  kI8 = 3,
  kU16 = 4,
  kI16 = 5,
  kI32 = 6,
  kI64 = 7,
  kBool = 9,
  kF16 = 10,
  kF64 = 11,
  kU32 = 12,
  kU64 = 13,
  kBF16 = 16,
};

[[nodiscard]] HONE_API int64_t dtype_bytes(DType dtype);          // of an element
[[nodiscard]] HONE_API std::string_view dtype_name(DType dtype);  // such as "f32", "i64", "bool"
// Finds a type by the name that dtype_name() gives it.
[[nodiscard]] HONE_API std::optional<DType> parse_dtype(std::string_view name);

}  // namespace hone
