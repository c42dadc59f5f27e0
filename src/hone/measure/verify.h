// measure/verify.h - compares an output with what it must be.
#pragma once

#include <cstdint>
#include <span>

#include "hone/tensor/dtype.h"

namespace hone::measure {

// The greatest difference, relative to the greatest finite expected value (absolute if that is 0).
// Infinite where one side is not finite and the other is not the same. `places` empty: `values`
// holds every element.
[[nodiscard]] double relative_error(const void* data, DType dtype, std::span<const int64_t> places,
                                    std::span<const double> values);

}  // namespace hone::measure
