// tensor/small_types.h - defines the element types of hone/small_dtype.h: their formats and
// conversions, how ONNX packs them, and the type that programs see instead (ONNX, "Float stored in
// 8 bits" and "4 bit integer types"; OCP 8-bit Floating Point Specification; OCP Microscaling
// Formats). Also the names of ONNX's codes, for messages.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "hone/base/status.h"
#include "hone/small_dtype.h"
#include "hone/tensor.h"

namespace hone {

// Returns whether a type is one of hone/small_dtype.h.
[[nodiscard]] bool is_small(DType dtype);
// Returns whether a small type is a float.
[[nodiscard]] bool is_small_float(DType dtype);
// Returns the type of the same memory that programs read and write: i8 or u8 for a small type.
[[nodiscard]] DType stored_type(DType dtype);

// A float of at most 8 bits with a sign. Codes are those without the sign, but that of NaN.
struct SmallFloat {
  int mantissa;      // explicit bits
  int bias;          // the exponent that is stored for 1: the least normal number is 2^(1 - bias)
  int sign;          // the bit of the sign
  int largest;       // code of the largest finite number
  int overflow;      // code of what is beyond, where nothing saturates
  int nan;           // the whole code
  bool has_inf;      // `overflow` is infinite
  bool signed_zero;  // else a zero has no sign, and the sign alone is NaN
};
// Returns the format of a small float with a sign, or null.
[[nodiscard]] const SmallFloat* small_float(DType dtype);
// Returns the bits of a small integer type: 2 or 4; else 0.
[[nodiscard]] int small_integer_bits(DType dtype);
// Returns the least and the greatest number of a small integer type.
[[nodiscard]] std::pair<int, int> small_integer_range(DType dtype);

[[nodiscard]] double small_to_double(DType dtype, uint8_t code);
// Rounds to nearest even; what is out of range, infinite too, becomes the nearest finite number.
// NaN of a type that has none becomes 0. An integer's fraction is cut off; f8e8m0 rounds up.
[[nodiscard]] uint8_t double_to_small(DType dtype, double value);

// Returns the largest step from one number of a small type to the next, relative to the greater.
[[nodiscard]] double small_step(DType dtype);

// Returns how many elements share a byte in ONNX files: 4, 2 or 1.
[[nodiscard]] int elements_per_byte(DType dtype);
// Return elements as ONNX packs them, the first in the lowest bits, and the tensor of packed ones.
[[nodiscard]] std::string packed(const Tensor& tensor);
[[nodiscard]] Tensor unpacked(DType dtype, const Shape& shape, std::string_view bytes);

// Returns a tensor of the type, if that is its own type, or if bytes (u8, i8) may stand for it: the
// bits of a small type, as NumPy's void type has them. Bits above an integer's own are ignored.
[[nodiscard]] std::optional<Tensor> as_type(const Tensor& tensor, DType dtype);

// Returns an ONNX element type for a message, such as "float8e4m3fn (17)".
[[nodiscard]] std::string onnx_type_text(int code);

}  // namespace hone
