// ir/scalar.h - what each operator does to one value: the meaning of the language, shared by
// constant folding, the interpreter and the tests.
//
// Integers are int64 wrapped to their type after each operation; a kU64 is held as the int64 of the
// same bits, which what takes a DType knows. Floats
// are computed in double and rounded to their type where they are stored, cast or constant.
// min and max return the second operand if either is NaN, as x86's do. A float cast to an integer
// is truncated and saturates; NaN becomes 0.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "hone/ir/expr.h"

namespace hone::ir {

// The value of type nearest to `value` (integers: modulo 2^bits; kBool: value != 0).
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
  return r + ((r != 0) & ((r < 0) != (b < 0)) ? b : 0);
}
// Integers that wrap instead of overflowing.
[[nodiscard]] inline int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
[[nodiscard]] inline int64_t wrapping_sub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
[[nodiscard]] inline int64_t wrapping_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// Rounded once.
[[nodiscard]] double int_to_float(DType from, DType to, int64_t value);
// The bits of a value of a float type, in the lowest bits, and back.
[[nodiscard]] uint64_t float_bits(DType type, double value);
[[nodiscard]] double bits_float(DType type, uint64_t bits);

// Shifts of a value that is wrapped to `type`.
[[nodiscard]] int64_t shift(Op op, DType type, int64_t a, int64_t by);
// An operator with two float or two integer operands and a result of the same type; integer
// division by zero must not be asked for. apply_integer also knows kU64 and shifts.
[[nodiscard]] int64_t apply_integer(Op op, DType type, int64_t a, int64_t b);
[[nodiscard]] double apply_binary(Op op, double a, double b);
[[nodiscard]] int64_t apply_binary(Op op, int64_t a, int64_t b);
[[nodiscard]] double apply_unary(Op op, double a);
[[nodiscard]] int64_t apply_unary(Op op, int64_t a);
// kLt, kLe, kEq, kNe.
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
[[nodiscard]] inline bool is_unary(Op op) { return op >= Op::kNeg; }
[[nodiscard]] inline bool is_binary(Op op) { return op >= Op::kAdd && op <= Op::kShr; }

}  // namespace hone::ir
