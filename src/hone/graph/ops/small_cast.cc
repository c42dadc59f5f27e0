#include "hone/graph/ops/small_cast.h"

#include <cmath>
#include <limits>

#include "hone/tensor/dtype.h"

namespace hone::graph {
namespace {

using ir::Expr;
using ir::Op;

Expr same_type(const Expr& like, int64_t value) { return ir::constant_int(value, like->type); }
Expr bits_and(const Expr& x, int64_t mask) {
  return ir::make(Op::kBitAnd, {x, same_type(x, mask)});
}
Expr bits_or(const Expr& a, const Expr& b) { return ir::make(Op::kBitOr, {a, b}); }
Expr shift_left(const Expr& x, int64_t by) { return ir::make(Op::kShl, {x, same_type(x, by)}); }
Expr shift_right(const Expr& x, int64_t by) { return ir::make(Op::kShr, {x, same_type(x, by)}); }
Expr equals(const Expr& x, int64_t value) { return ir::make(Op::kEq, {x, same_type(x, value)}); }
Expr beyond(const Expr& x, int64_t value) { return ir::less(same_type(x, value), x); }
Expr f32(double value) { return ir::constant_float(value, DType::kF32); }

// The layout of a wide float, whose bits are computed with as integers of its width.
struct Wide {
  explicit Wide(DType dtype) {
    if (dtype == DType::kF64) bits = DType::kI64, mantissa = 52, bias = 1023;
  }
  DType bits = DType::kI32;
  int mantissa = 23, bias = 127;
  [[nodiscard]] int width() const { return bits == DType::kI64 ? 64 : 32; }
  [[nodiscard]] int64_t infinity() const { return int64_t{2 * bias + 1} << mantissa; }
};

Expr decode(const SmallFloat& format, const Expr& byte) {
  const Wide wide(DType::kF32);
  const Expr code = ir::cast(DType::kI32, byte);
  const Expr magnitude = bits_and(code, format.sign - 1);
  // Below the least normal number all are multiples of one unit.
  const double unit = std::ldexp(1.0, 1 - format.bias - format.mantissa);
  const Expr tiny = ir::cast(DType::kF32, magnitude) * f32(unit);
  const Expr normal =
      ir::bit_cast(DType::kF32, shift_left(magnitude, wide.mantissa - format.mantissa) +
                                    (int64_t{wide.bias - format.bias} << wide.mantissa));
  const Expr is_tiny = ir::less(magnitude, same_type(magnitude, 1 << format.mantissa));
  Expr value = ir::select(is_tiny, tiny, normal);
  if (format.largest < format.sign - 1) {
    const Expr nan = f32(std::numeric_limits<double>::quiet_NaN());
    const Expr special =
        format.has_inf ? ir::select(equals(magnitude, format.overflow), f32(HUGE_VAL), nan) : nan;
    value = ir::select(beyond(magnitude, format.largest), special, value);
  }
  value = value * ir::select(equals(bits_and(code, format.sign), 0), f32(1), f32(-1));
  if (format.signed_zero) return value;
  return ir::select(equals(code, format.nan), f32(std::numeric_limits<double>::quiet_NaN()), value);
}

// The bits of the value are rounded as an integer, and a carry runs into the exponent as it should.
Expr encode(const SmallFloat& format, const Expr& value, bool saturate) {
  const Wide wide(value->type);
  const Expr bits = ir::bit_cast(wide.bits, value);
  // All bits but the sign: those of the greatest NaN.
  const Expr magnitude = bits_and(bits, wide.infinity() | ((int64_t{1} << wide.mantissa) - 1));
  const int drop = wide.mantissa - format.mantissa;
  const Expr odd = bits_and(shift_right(magnitude, drop), 1);
  const Expr rounded = shift_right(magnitude + ((int64_t{1} << (drop - 1)) - 1) + odd, drop);
  const Expr normal = rounded - (int64_t{wide.bias - format.bias} << format.mantissa);
  const double per_unit = std::ldexp(1.0, format.bias - 1 + format.mantissa);
  const Expr size = ir::bit_cast(value->type, magnitude);
  const Expr units = ir::make(Op::kRound, {size * ir::constant_float(per_unit, value->type)});
  const Expr least = ir::constant_float(std::ldexp(1.0, 1 - format.bias), value->type);
  const Expr tiny = ir::cast(wide.bits, units);
  // What is too large is one more than the largest, or is it.
  const Expr code = ir::min(ir::select(ir::less(size, least), tiny, normal),
                            same_type(bits, saturate ? format.largest : format.overflow));
  Expr sign = bits_and(shift_right(bits, wide.width() - 1), format.sign);
  if (!format.signed_zero) sign = ir::select(equals(code, 0), same_type(sign, 0), sign);
  Expr with_sign = bits_or(code, sign);
  with_sign =
      ir::select(beyond(magnitude, wide.infinity()), same_type(code, format.nan), with_sign);
  return ir::cast(DType::kU8, with_sign);
}

Expr decode_power(const Expr& byte) {
  const Expr code = ir::cast(DType::kI32, byte);
  const Expr normal = ir::bit_cast(DType::kF32, shift_left(code, 23));
  const Expr value = ir::select(equals(code, 0), f32(0x1p-127), normal);
  return ir::select(equals(code, 0xFF), f32(std::numeric_limits<double>::quiet_NaN()), value);
}

// As ONNX's reference has it: the exponent of the f32, one more if the fraction asks for that.
Expr encode_power(const Expr& value, const SmallRounding& rounding) {
  const Expr bits = ir::bit_cast(DType::kI32, ir::cast(DType::kF32, value));
  const Expr exponent = bits_and(shift_right(bits, 23), 0xFF);
  const Expr fraction = bits_and(bits, 0x7FFFFF);
  using Power = SmallRounding::Power;
  Expr more = ir::constant_bool(false);
  if (rounding.power == Power::kUp) more = beyond(fraction, 0);
  if (rounding.power == Power::kNearest) {
    const Expr tie = ir::logical_and(equals(fraction, 0x400000), beyond(exponent, 0));
    more = ir::make(Op::kOr, {beyond(fraction, 0x400000), tie});
  }
  if (rounding.saturate)
    more = ir::logical_and(more, ir::less(exponent, same_type(exponent, 0xFE)));
  more = ir::logical_and(more, ir::less(exponent, same_type(exponent, 0xFF)));
  return ir::cast(DType::kU8, ir::select(more, exponent + 1, exponent));
}

}  // namespace

Expr from_small(DType dtype, const Expr& code) {
  if (const SmallFloat* format = small_float(dtype)) return decode(*format, code);
  if (dtype == kF8E8M0) return decode_power(code);
  // Only the lowest bits count, whoever wrote the others.
  const int bits = small_integer_bits(dtype);
  const Expr low = bits_and(ir::cast(DType::kI32, code), (1 << bits) - 1);
  if (stored_type(dtype) == DType::kU8) return low;
  const int64_t half = int64_t{1} << (bits - 1);
  return ir::make(Op::kBitXor, {low, same_type(low, half)}) - half;
}

Expr to_small(DType dtype, const Expr& value, const SmallRounding& rounding) {
  const bool number = is_float(value->type);
  const Expr real = number ? value : ir::cast(DType::kF32, value);
  if (const SmallFloat* format = small_float(dtype))
    return encode(*format, real, rounding.saturate);
  if (dtype == kF8E8M0) return encode_power(real, rounding);
  const Expr whole = value->type == DType::kI32 ? value : ir::cast(DType::kI32, value);
  return ir::cast(stored_type(dtype), from_small(dtype, whole));
}

}  // namespace hone::graph
