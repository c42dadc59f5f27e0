#include "hone/ir/scalar.h"

#include <algorithm>
#include <limits>

#include "hone/base/assert.h"
#include "hone/tensor/half.h"

namespace hone::ir {
namespace {

// Rounds to a binary float with `mantissa` explicit bits and the given least normal exponent and
// largest finite value, to nearest even; what is beyond becomes infinite.
double round_small(double value, int mantissa, int min_exponent, double max_finite) {
  if (!std::isfinite(value) || value == 0) return value;
  int exponent = 0;
  std::frexp(value, &exponent);  // |value| in [2^(exponent-1), 2^exponent)
  const int quantum = std::max(exponent - 1, min_exponent) - mantissa;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -quantum)), quantum);
  if (std::fabs(rounded) > max_finite)
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  return rounded;
}

}  // namespace

int64_t wrap_int(DType type, int64_t value) {
  switch (type) {
    case DType::kBool: return value != 0;
    case DType::kU8: return static_cast<uint8_t>(value);
    case DType::kI8: return static_cast<int8_t>(value);
    case DType::kU16: return static_cast<uint16_t>(value);
    case DType::kI16: return static_cast<int16_t>(value);
    case DType::kU32: return static_cast<uint32_t>(value);
    case DType::kI32: return static_cast<int32_t>(value);
    default: return value;
  }
}

double round_float(DType type, double value) {
  switch (type) {
    case DType::kF32: return static_cast<double>(static_cast<float>(value));
    case DType::kF16: return round_small(value, 10, -14, 65504.0);
    case DType::kBF16: return round_small(value, 7, -126, 0x1.FEp127);
    default: return value;
  }
}

int64_t float_to_int(DType type, double value) {
  if (type == DType::kBool) return value != 0;
  if (std::isnan(value)) return 0;
  const int bits = static_cast<int>(dtype_bytes(type)) * 8;
  const bool is_unsigned = type == DType::kU8 || type == DType::kU16 || type == DType::kU32;
  if (type == DType::kU64) {
    if (value <= 0) return 0;
    return static_cast<int64_t>(value >= 0x1p64 ? ~uint64_t{0} : static_cast<uint64_t>(value));
  }
  const double high = std::ldexp(1.0, is_unsigned ? bits : bits - 1);  // the first value beyond
  const double low = is_unsigned ? 0 : -high;
  if (value >= high) {
    return bits == 64 ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(high) - 1;
  }
  if (value <= low) return static_cast<int64_t>(low);
  return static_cast<int64_t>(value);
}

double int_to_float(DType from, DType to, int64_t value) {
  const bool no_sign = from == DType::kU64;
  const auto bits = static_cast<uint64_t>(value);
  if (to == DType::kF32)
    return static_cast<double>(no_sign ? static_cast<float>(bits) : static_cast<float>(value));
  return round_float(to, no_sign ? static_cast<double>(bits) : static_cast<double>(value));
}

uint64_t float_bits(DType type, double value) {
  switch (type) {
    case DType::kF16: return double_to_f16(value);
    case DType::kBF16: return double_to_bf16(value);
    case DType::kF32: return std::bit_cast<uint32_t>(static_cast<float>(value));
    default: return std::bit_cast<uint64_t>(value);
  }
}

double bits_float(DType type, uint64_t bits) {
  switch (type) {
    case DType::kF16: return f16_to_double(static_cast<uint16_t>(bits));
    case DType::kBF16: return bf16_to_double(static_cast<uint16_t>(bits));
    case DType::kF32: return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    default: return std::bit_cast<double>(bits);
  }
}

double apply_binary(Op op, double a, double b) {
  switch (op) {
    case Op::kAdd: return a + b;
    case Op::kSub: return a - b;
    case Op::kMul: return a * b;
    case Op::kDiv: return a / b;
    case Op::kRem: return std::fmod(a, b);
    case Op::kMin: return a < b ? a : b;
    case Op::kMax: return a > b ? a : b;
    case Op::kPow: return std::pow(a, b);
    default: break;
  }
  HONE_ASSERT(false, "not a binary operator of floats");
}

int64_t apply_binary(Op op, int64_t a, int64_t b) {
  switch (op) {
    case Op::kAdd: return wrapping_add(a, b);
    case Op::kSub: return wrapping_sub(a, b);
    case Op::kMul: return wrapping_mul(a, b);
    case Op::kDiv: return b == -1 ? wrapping_sub(0, a) : a / b;
    case Op::kFloorDiv: return floor_div(a, b);
    case Op::kFloorMod: return floor_mod(a, b);
    case Op::kRem: return b == -1 ? 0 : a % b;
    case Op::kMin: return a < b ? a : b;
    case Op::kMax: return a > b ? a : b;
    case Op::kAnd:
    case Op::kBitAnd: return a & b;
    case Op::kOr:
    case Op::kBitOr: return a | b;
    case Op::kBitXor: return a ^ b;
    default: break;
  }
  HONE_ASSERT(false, "not a binary operator of integers");
}

int64_t apply_integer(Op op, DType type, int64_t a, int64_t b) {
  if (op == Op::kShl || op == Op::kShr) return shift(op, type, a, b);
  if (type != DType::kU64) return apply_binary(op, a, b);
  const auto x = static_cast<uint64_t>(a);
  const auto y = static_cast<uint64_t>(b);
  switch (op) {
    case Op::kDiv:
    case Op::kFloorDiv: return static_cast<int64_t>(x / y);
    case Op::kRem:
    case Op::kFloorMod: return static_cast<int64_t>(x % y);
    case Op::kMin: return x < y ? a : b;
    case Op::kMax: return x > y ? a : b;
    default: return apply_binary(op, a, b);
  }
}

int64_t shift(Op op, DType type, int64_t a, int64_t by) {
  const auto bits = static_cast<uint64_t>(dtype_bytes(type)) * 8;
  const bool beyond = static_cast<uint64_t>(by) >= bits;
  if (op == Op::kShl)
    return beyond ? 0 : wrap_int(type, static_cast<int64_t>(static_cast<uint64_t>(a) << by));
  // Types without sign are kept as non-negative numbers, except kU64.
  if (type == DType::kU64) return beyond ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) >> by);
  return a >> std::min<uint64_t>(static_cast<uint64_t>(by), 63);
}

double apply_unary(Op op, double a) {
  switch (op) {
    case Op::kNeg: return -a;
    case Op::kAbs: return std::fabs(a);
    case Op::kSqrt: return std::sqrt(a);
    case Op::kExp: return std::exp(a);
    case Op::kLog: return std::log(a);
    case Op::kTanh: return std::tanh(a);
    case Op::kErf: return std::erf(a);
    case Op::kSigmoid: return 1 / (1 + std::exp(-a));
    case Op::kFloor: return std::floor(a);
    case Op::kCeil: return std::ceil(a);
    case Op::kRound: return std::nearbyint(a);
    case Op::kSin: return std::sin(a);
    case Op::kCos: return std::cos(a);
    case Op::kAtan: return std::atan(a);
    default: break;
  }
  HONE_ASSERT(false, "not a function of floats");
}

int64_t apply_unary(Op op, int64_t a) {
  switch (op) {
    case Op::kNeg: return wrapping_sub(0, a);
    case Op::kAbs: return a < 0 ? wrapping_sub(0, a) : a;
    case Op::kNot: return a == 0;
    default: break;
  }
  HONE_ASSERT(false, "not a function of integers");
}

}  // namespace hone::ir
