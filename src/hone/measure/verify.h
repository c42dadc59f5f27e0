// measure/verify.h - compares an output with the expected one.
#pragma once

#include <cstdint>
#include <span>

#include "hone/tensor/dtype.h"

namespace hone::measure {

// Returns the largest difference relative to the largest finite expected value (absolute if that is
// 0). It is infinite if one side is not finite and the other is not the same. If `places` is empty,
// `values` has every element.
[[nodiscard]] double relative_error(const void* data, DType dtype, std::span<const int64_t> places,
                                    std::span<const double> values);

}  // namespace hone::measure
