#include "hone/backend/cpu/scalar_inst.h"

namespace hone::backend::cpu {
namespace {

using Flag = uint64_t;
// kNoCarry: the carry is unknown.
constexpr Flag kCarry = 1, kZero = 2, kSign = 4, kOver = 8, kNoCarry = 16;

uint64_t low_bits(uint64_t word, int bits) {
  return bits >= 64 ? word : word & ((uint64_t{1} << bits) - 1);
}
int64_t as_signed(uint64_t word, int bits) {
  const int unused = 64 - bits;
  return static_cast<int64_t>(word << unused) >> unused;
}

std::optional<uint64_t> value_of(const ScalarOperand& operand, const ScalarState& state) {
  switch (operand.kind) {
    case ScalarOperand::Kind::kConstant: return low_bits(operand.constant, operand.bits);
    case ScalarOperand::Kind::kVariable: {
      const ScalarValue& value = state[static_cast<size_t>(operand.variable)];
      if (!value.known || value.bits < operand.bits) return std::nullopt;
      return low_bits(value.word, operand.bits);
    }
    default: return std::nullopt;
  }
}

struct Result128 {
  uint64_t low = 0, high = 0;
};

std::optional<Result128> divide(const ScalarInst& i, uint64_t low, uint64_t divisor,
                                uint64_t high) {
  if (divisor == 0) return std::nullopt;
  using Wide = unsigned __int128;
  using SignedWide = __int128;
  if (i.op == ScalarOp::kDivUnsigned) {
    const Wide dividend = (static_cast<Wide>(high) << i.bits) | low;
    return Result128{static_cast<uint64_t>(dividend / divisor),
                     static_cast<uint64_t>(dividend % divisor)};
  }
  const SignedWide top = as_signed(high, i.bits);
  const auto dividend = static_cast<SignedWide>((static_cast<Wide>(top) << i.bits) | low);
  const SignedWide by = as_signed(divisor, i.bits);
  return Result128{static_cast<uint64_t>(dividend / by), static_cast<uint64_t>(dividend % by)};
}

Result128 multiply(const ScalarInst& i, uint64_t a, uint64_t b) {
  unsigned __int128 product = 0;
  if (i.op == ScalarOp::kMulHighSigned) {
    product = static_cast<unsigned __int128>(static_cast<__int128>(as_signed(a, i.bits)) *
                                             as_signed(b, i.bits));
  } else {
    product = static_cast<unsigned __int128>(a) * b;
  }
  return {static_cast<uint64_t>(product), static_cast<uint64_t>(product >> i.bits)};
}

uint64_t simple_result(const ScalarInst& i, uint64_t a, uint64_t b) {
  const auto count = static_cast<int>(b & (i.bits == 64 ? 63 : 31));
  switch (i.op) {
    case ScalarOp::kMove: return a;
    case ScalarOp::kAdd: return a + b;
    case ScalarOp::kSub: return a - b;
    case ScalarOp::kAnd: return a & b;
    case ScalarOp::kOr: return a | b;
    case ScalarOp::kXor: return a ^ b;
    case ScalarOp::kAndNot: return ~a & b;
    case ScalarOp::kMul: return a * b;
    case ScalarOp::kShiftLeft: return a << count;
    case ScalarOp::kShiftRight: return a >> count;
    case ScalarOp::kShiftRightSigned: return static_cast<uint64_t>(as_signed(a, i.bits) >> count);
    case ScalarOp::kNot: return ~a;
    case ScalarOp::kSignExtend: return static_cast<uint64_t>(as_signed(a, i.a.bits));
    case ScalarOp::kAddress:
      return a + b * static_cast<uint64_t>(i.scale) + static_cast<uint64_t>(i.displacement);
    default: return 0;
  }
}

uint64_t flags_of(const ScalarInst& i, uint64_t a, uint64_t b, uint64_t result) {
  const uint64_t top = uint64_t{1} << (i.bits - 1);
  uint64_t flags = (result == 0 ? kZero : 0) | ((result & top) != 0 ? kSign : 0);
  if (i.op == ScalarOp::kSub) {
    flags |= (a < b ? kCarry : 0) | (((a ^ b) & (a ^ result) & top) != 0 ? kOver : 0);
  } else if (i.op == ScalarOp::kAdd) {
    flags |= (result < a ? kCarry : 0) | ((~(a ^ b) & (a ^ result) & top) != 0 ? kOver : 0);
  }
  return i.carry_unknown ? flags | kNoCarry : flags;
}

void write(ScalarState& state, const ScalarInst& i, Variable to, std::optional<uint64_t> word) {
  if (to == kNoVariable) return;
  ScalarValue& value = state[static_cast<size_t>(to)];
  if (!word) {
    value = {};
  } else if (i.bits >= 32 || i.op == ScalarOp::kSet || value.bits < 64) {
    value = {true, i.bits, low_bits(*word, i.bits)};
    // The upper half of a register becomes zero.
    if (i.bits == 32 && to < kFirstWord) value.bits = 64;
  } else if (value.known) {
    value.word = (value.word & ~low_bits(~uint64_t{0}, i.bits)) | low_bits(*word, i.bits);
  }
}

}  // namespace

Condition inverse(Condition condition) {
  if (condition == Condition::kAlways || condition == Condition::kUnknown) return condition;
  const int index = static_cast<int>(condition) - 1;  // pairs from kEqual on
  return static_cast<Condition>((index ^ 1) + 1);
}

std::optional<bool> holds(Condition condition, const ScalarValue& flags) {
  if (condition == Condition::kAlways) return true;
  if (!flags.known || condition == Condition::kUnknown) return std::nullopt;
  const auto has = [&](Flag flag) { return (flags.word & flag) != 0; };
  const bool less = has(kSign) != has(kOver);
  switch (condition) {
    case Condition::kEqual: return has(kZero);
    case Condition::kLess: return less;
    case Condition::kLessEqual: return less || has(kZero);
    case Condition::kBelow: return has(kNoCarry) ? std::nullopt : std::optional<bool>(has(kCarry));
    case Condition::kBelowEqual:
      return has(kNoCarry) ? std::nullopt : std::optional<bool>(has(kCarry) || has(kZero));
    case Condition::kNegative: return has(kSign);
    case Condition::kOverflow: return has(kOver);
    default: {
      const std::optional<bool> other = holds(inverse(condition), flags);
      return other ? std::optional<bool>(!*other) : std::nullopt;
    }
  }
}

void execute(const ScalarInst& i, ScalarState& state) {
  if (i.op == ScalarOp::kNone) {
    for (const Variable v : i.clobbers) state[static_cast<size_t>(v)] = {};
    return;
  }
  const std::optional<uint64_t> a = value_of(i.a, state);
  const std::optional<uint64_t> b =
      i.b.kind == ScalarOperand::Kind::kNone ? std::optional<uint64_t>(0) : value_of(i.b, state);
  const ScalarValue before = state[kFlags];
  std::optional<uint64_t> low, high;
  if (i.op == ScalarOp::kSet || i.op == ScalarOp::kSelect) {
    const std::optional<bool> met = holds(i.condition, before);
    if (met) low = i.op == ScalarOp::kSet ? std::optional<uint64_t>(*met ? 1 : 0) : *met ? b : a;
  } else if (i.op == ScalarOp::kXor && i.a.variable == i.b.variable &&
             i.a.kind == ScalarOperand::Kind::kVariable) {
    low = 0;
  } else if (a && b) {
    if (i.op == ScalarOp::kDivSigned || i.op == ScalarOp::kDivUnsigned) {
      const std::optional<uint64_t> top = value_of(i.high_word, state);
      const auto result = top ? divide(i, *a, *b, *top) : std::nullopt;
      if (result) low = result->low, high = result->high;
    } else if (i.op == ScalarOp::kMulHighSigned || i.op == ScalarOp::kMulHighUnsigned) {
      const Result128 result = multiply(i, *a, *b);
      low = result.low, high = result.high;
    } else {
      low = simple_result(i, *a, *b);
    }
  }
  for (const Variable v : i.clobbers) state[static_cast<size_t>(v)] = {};
  write(state, i, i.dst, low);
  write(state, i, i.high, high);
  if (!i.sets_flags) return;
  ScalarValue& flags = state[kFlags];
  flags = {};
  const bool plain = i.op != ScalarOp::kMul && i.op != ScalarOp::kMulHighSigned &&
                     i.op != ScalarOp::kMulHighUnsigned;
  if (low && plain)
    flags = {true, 64, flags_of(i, a.value_or(0), b.value_or(0), low_bits(*low, i.bits))};
}

}  // namespace hone::backend::cpu
