// tensor/dtype.h - answers what only the compiler asks of element types (hone/dtype.h).
#pragma once

#include <optional>

#include "hone/dtype.h"

namespace hone {

[[nodiscard]] bool is_float(DType dtype);
[[nodiscard]] std::optional<DType> dtype_from_onnx(int code);

}  // namespace hone
