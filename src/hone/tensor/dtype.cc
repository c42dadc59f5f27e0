#include "hone/tensor/dtype.h"

#include <array>

namespace hone {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  int64_t bytes;
};
constexpr std::array<Row, 13> kRows = {{
    {DType::kF32, "f32", 4},
    {DType::kU8, "u8", 1},
    {DType::kI8, "i8", 1},
    {DType::kU16, "u16", 2},
    {DType::kI16, "i16", 2},
    {DType::kI32, "i32", 4},
    {DType::kI64, "i64", 8},
    {DType::kBool, "bool", 1},
    {DType::kF16, "f16", 2},
    {DType::kF64, "f64", 8},
    {DType::kU32, "u32", 4},
    {DType::kU64, "u64", 8},
    {DType::kBF16, "bf16", 2},
}};

const Row* find(DType dtype) {
  for (const Row& row : kRows) {
    if (row.dtype == dtype) return &row;
  }
  return nullptr;
}

}  // namespace

int64_t dtype_bytes(DType dtype) {
  const Row* row = find(dtype);
  return row ? row->bytes : 0;
}

bool is_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kF16 ||
         dtype == DType::kBF16;
}

std::string_view dtype_name(DType dtype) {
  const Row* row = find(dtype);
  return row ? row->name : "unknown";
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_onnx(int code) {
  for (const Row& row : kRows) {
    if (static_cast<int>(row.dtype) == code) return row.dtype;
  }
  return std::nullopt;
}

}  // namespace hone
