// tensor/dtype.h - element types. The numeric values are ONNX's TensorProto.DataType codes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

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

[[nodiscard]] int64_t dtype_bytes(DType dtype);
[[nodiscard]] bool is_float(DType dtype);
[[nodiscard]] std::string_view dtype_name(DType dtype);  // such as "f32", "i64", "bool"
[[nodiscard]] std::optional<DType> parse_dtype(std::string_view name);
[[nodiscard]] std::optional<DType> dtype_from_onnx(int code);

}  // namespace hone
