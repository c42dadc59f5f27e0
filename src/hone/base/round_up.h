// base/round_up.h - divides counts and sizes and rounds up. No argument may be negative.
#pragma once

#include <concepts>
#include <type_traits>

namespace hone {

template <std::integral T>
[[nodiscard]] constexpr T ceil_div(T value, std::type_identity_t<T> divisor) {
  return (value + divisor - 1) / divisor;
}

// Returns the least multiple of `multiple` that is not less than `value`.
template <std::integral T>
[[nodiscard]] constexpr T round_up(T value, std::type_identity_t<T> multiple) {
  return ceil_div(value, multiple) * multiple;
}

}  // namespace hone
