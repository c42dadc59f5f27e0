// tensor/tensor.h - which shapes from outside are valid; arrays themselves are public
// (hone/tensor.h).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hone/base/assert.h"
#include "hone/base/status.h"
#include "hone/tensor.h"
#include "hone/tensor/dtype.h"

namespace hone {

// A shape from outside is valid if no extent is negative and those that are not 0 multiply to at
// most kMaxElements, so that nothing computed from them overflows.
inline constexpr double kMaxElements = 1e11;
[[nodiscard]] bool is_valid(const Shape& shape);

}  // namespace hone
