// small_dtype.h - element types of 8 bits and fewer that no program computes with: they are stored,
// moved and converted (Cast, QuantizeLinear, DequantizeLinear). The numeric values are ONNX's
// codes. In memory an element takes one byte: the code of a float, the value of an integer. In an
// ONNX file two elements of 4 bits, or four of 2 bits, share a byte. parse_dtype() does not know
// the names.
#pragma once

#include "hone/dtype.h"

namespace hone {

inline constexpr auto kF8E4M3FN = static_cast<DType>(17);    // no infinities
inline constexpr auto kF8E4M3FNUZ = static_cast<DType>(18);  // no infinities, no negative zero
inline constexpr auto kF8E5M2 = static_cast<DType>(19);
inline constexpr auto kF8E5M2FNUZ = static_cast<DType>(20);
inline constexpr auto kU4 = static_cast<DType>(21);
inline constexpr auto kI4 = static_cast<DType>(22);
inline constexpr auto kF4E2M1 = static_cast<DType>(23);  // neither infinities nor NaN
inline constexpr auto kF8E8M0 = static_cast<DType>(24);  // powers of 2, no sign, no zero
inline constexpr auto kU2 = static_cast<DType>(25);
inline constexpr auto kI2 = static_cast<DType>(26);

}  // namespace hone
