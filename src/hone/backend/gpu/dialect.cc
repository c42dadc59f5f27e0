#include "hone/backend/gpu/dialect.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "hone/base/assert.h"

namespace hone::backend::gpu {

std::string_view dialect_name(Dialect dialect) {
  return dialect == Dialect::kOpenCl ? "OpenCL C" : "CUDA C";
}

bool is_small_float(DType type) { return is_float(type) && dtype_bytes(type) == 2; }

std::string_view memory_type(Dialect dialect, DType type) {
  switch (type) {
    case DType::kF32: return "float";
    case DType::kF64: return "double";
    case DType::kI8: return dialect == Dialect::kCuda ? "signed char" : "char";
    case DType::kI16: return "short";
    case DType::kI32: return "int";
    case DType::kI64: return "long";
    case DType::kBool:
    case DType::kU8: return "uchar";
    case DType::kF16:
    case DType::kBF16:
    case DType::kU16: return "ushort";
    case DType::kU32: return "uint";
    case DType::kU64: return "ulong";
    default: break;
  }
  HONE_ASSERT(false, "a type without elements");
}

std::string_view value_type(Dialect dialect, DType type) {
  if (type == DType::kBool) return "bool";
  return is_small_float(type) ? "float" : memory_type(dialect, type);
}

std::string integer_literal(DType type, int64_t value) {
  if (type == DType::kBool) return value != 0 ? "true" : "false";
  if (type == DType::kU32) return fmt::format("{}u", static_cast<uint32_t>(value));
  if (type == DType::kU64) return fmt::format("{}ul", static_cast<uint64_t>(value));
  // C has no literal of the lowest number of a type, only the negation of what is too large.
  if (value == std::numeric_limits<int64_t>::min()) return "(-9223372036854775807l - 1)";
  if (value == std::numeric_limits<int32_t>::min()) return "(-2147483647 - 1)";
  const bool fits =
      value > std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max();
  return fmt::format("{}{}", value, fits ? "" : "l");
}

std::string float_literal(DType type, double value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value < 0 ? "-INFINITY" : "INFINITY";
  const bool is_double = type == DType::kF64;
  std::string text =
      is_double ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return is_double ? text : text + "f";
}

int vector_step(Dialect dialect, DType type) {
  return dialect == Dialect::kCuda && is_small_float(type) ? 2 : 1;
}

std::string vector_type(Dialect dialect, DType type, int lanes) {
  const int words = lanes / vector_step(dialect, type);
  if (words < lanes) return words == 1 ? "uint" : fmt::format("uint{}", words);
  const std::string_view element =
      type == DType::kI8 ? std::string_view("char") : memory_type(dialect, type);
  return fmt::format("{}{}", element, lanes);
}

std::string make_vector(Dialect dialect, const std::string& type, const std::string& elements) {
  if (type == "uint") return elements;
  return dialect == Dialect::kCuda ? fmt::format("make_{}({})", type, elements)
                                   : fmt::format("({})({})", type, elements);
}

}  // namespace hone::backend::gpu
