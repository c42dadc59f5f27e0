// ir/scalar.h - defines what each operator does to one value. Constant folding, the interpreter and
// the tests share these definitions.
//
// Integers are int64 values that are wrapped to their type after each operation. A kU64 is held as
// the int64 with the same bits; only functions that take a DType treat it correctly. Floats are
// computed in double and rounded to their type where they are stored, cast or constant. min and max
// return the second operand if either is NaN, as x86's instructions do. A float cast to an integer
// is truncated and saturates; NaN becomes 0.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "hone/ir/expr.h"

namespace hone::ir {

// Returns the value of the type that is congruent to `value` modulo 2^bits; for kBool it is value
// != 0.
[[nodiscard]] int64_t wrap_int(DType type, int64_t value);
[[nodiscard]] double round_float(DType type, double value);
[[nodiscard]] int64_t float_to_int(DType type, double value);

[[nodiscard]] inline int64_t floor_div(int64_t a, int64_t b) {
  if (b == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  const int64_t q = a / b;
  return q - ((a % b != 0) & ((a < 0) != (b < 0)));
}
[[nodiscard]] inline int64_t floor_mod(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t r = a % b;
  return r + (((r != 0) & ((r < 0) != (b < 0))) ? b : 0);
}
// Integer arithmetic that wraps instead of overflowing.
[[nodiscard]] inline int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
[[nodiscard]] inline int64_t wrapping_sub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
[[nodiscard]] inline int64_t wrapping_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// Converts with one rounding.
[[nodiscard]] double int_to_float(DType from, DType to, int64_t value);
// Returns the bits of a value of a float type in the lowest bits; bits_float converts back.
[[nodiscard]] uint64_t float_bits(DType type, double value);
[[nodiscard]] double bits_float(DType type, uint64_t bits);

// Shifts a value that is wrapped to `type`.
[[nodiscard]] int64_t shift(Op op, DType type, int64_t a, int64_t by);
// Applies an operator with two float or two integer operands whose result has the same type. The
// divisor of an integer division must not be zero. apply_integer also knows kU64 and shifts.
[[nodiscard]] int64_t apply_integer(Op op, DType type, int64_t a, int64_t b);
[[nodiscard]] double apply_binary(Op op, double a, double b);
[[nodiscard]] int64_t apply_binary(Op op, int64_t a, int64_t b);
[[nodiscard]] double apply_unary(Op op, double a);
[[nodiscard]] int64_t apply_unary(Op op, int64_t a);
// Applies kLt, kLe, kEq or kNe.
template <typename T>
[[nodiscard]] bool apply_compare(Op op, T a, T b) {
  if (op == Op::kLt) return a < b;
  if (op == Op::kLe) return a <= b;
  if (op == Op::kEq) return a == b;
  return a != b;
}
[[nodiscard]] inline bool compare_integers(Op op, DType type, int64_t a, int64_t b) {
  if (type != DType::kU64) return apply_compare(op, a, b);
  return apply_compare(op, static_cast<uint64_t>(a), static_cast<uint64_t>(b));
}
[[nodiscard]] inline bool is_compare(Op op) { return op >= Op::kLt && op <= Op::kNe; }
[[nodiscard]] inline bool is_division(Op op) { return op >= Op::kDiv && op <= Op::kRem; }

}  // namespace hone::ir
