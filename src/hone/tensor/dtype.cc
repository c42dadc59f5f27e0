#include "hone/tensor/dtype.h"

#include <array>
#include <span>

#include "hone/small_dtype.h"

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

// Types that no program computes with (hone/small_dtype.h).
constexpr std::array<Row, 10> kSmallRows = {{
    {kF8E4M3FN, "f8e4m3fn", 1},
    {kF8E4M3FNUZ, "f8e4m3fnuz", 1},
    {kF8E5M2, "f8e5m2", 1},
    {kF8E5M2FNUZ, "f8e5m2fnuz", 1},
    {kU4, "u4", 1},
    {kI4, "i4", 1},
    {kF4E2M1, "f4e2m1", 1},
    {kF8E8M0, "f8e8m0", 1},
    {kU2, "u2", 1},
    {kI2, "i2", 1},
}};

const Row* find(DType dtype) {
  for (const std::span<const Row> rows : {std::span<const Row>(kRows), {kSmallRows}}) {
    for (const Row& row : rows) {
      if (row.dtype == dtype) return &row;
    }
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
  if (code < 0 || code > UINT8_MAX) return std::nullopt;
  const Row* row = find(static_cast<DType>(code));
  return row ? std::optional(row->dtype) : std::nullopt;
}

}  // namespace hone
