// ops/type_code.h - element types that attributes give as ONNX's numbers. An attribute has 64 bits,
// and a number that needs more than 32 of them is no type.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "hone/tensor/dtype.h"
#include "hone/tensor/small_types.h"

namespace hone::graph {

inline std::optional<DType> type_of_code(int64_t code) {
  if (!std::in_range<int>(code)) return std::nullopt;
  return dtype_from_onnx(static_cast<int>(code));
}

// Returns the name and the number, for messages.
inline std::string type_code_text(int64_t code) {
  if (!std::in_range<int>(code)) return fmt::format("{}, which ONNX does not have", code);
  return onnx_type_text(static_cast<int>(code));
}

}  // namespace hone::graph
