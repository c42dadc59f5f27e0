// backend/cpu/scalar_inst.h - the instructions that decide which way a kernel's code takes: integer
// arithmetic on registers and on words of the stack, as values that can be executed. Whatever else
// an instruction writes becomes unknown, so that a result is either right or unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace hone::backend::cpu {

enum class ScalarOp : uint8_t {
  kNone,  // writes nothing that matters
  kMove,
  kAdd,
  kSub,
  kAnd,
  kOr,
  kXor,
  kAndNot,  // ~a & b
  kMul,
  kMulHighSigned,  // dst = low half of the product, high = high half
  kMulHighUnsigned,
  kDivSigned,  // dst = quotient, high = remainder
  kDivUnsigned,
  kShiftLeft,
  kShiftRight,
  kShiftRightSigned,
  kNot,
  kSignExtend,  // extends the bits of a
  kAddress,     // a + b * scale + displacement
  kSelect,      // condition ? b : a
  kSet,         // condition ? 1 : 0
};

// Conditions on the flags that a comparison of a and b leaves.
enum class Condition : uint8_t {
  kAlways,
  kEqual,
  kNotEqual,
  kLess,
  kGreaterEqual,
  kLessEqual,
  kGreater,
  kBelow,  // unsigned from here
  kAboveEqual,
  kBelowEqual,
  kAbove,
  kNegative,
  kNotNegative,
  kOverflow,
  kNoOverflow,
  kUnknown,
};
[[nodiscard]] Condition inverse(Condition condition);

// A register, the flags or a word of the stack; its number is below ScalarState's size.
using Variable = int;
inline constexpr Variable kNoVariable = -1;
inline constexpr Variable kFlags = 0;
inline constexpr Variable kFirstRegister = 1;  // up to 32 of them, then words of the stack
inline constexpr Variable kFirstWord = kFirstRegister + 32;

struct ScalarValue {
  bool known = false;
  int bits = 64;      // width of what was written; bits above it are zero
  uint64_t word = 0;  // flags: a sum of Flag
  friend bool operator==(const ScalarValue& a, const ScalarValue& b) {
    return a.known == b.known && (!a.known || (a.bits == b.bits && a.word == b.word));
  }
};

struct ScalarOperand {
  enum class Kind : uint8_t { kNone, kVariable, kConstant, kUnknown } kind = Kind::kNone;
  Variable variable = kNoVariable;
  uint64_t constant = 0;
  int bits = 64;

  static ScalarOperand of(Variable v, int bits = 64) { return {Kind::kVariable, v, 0, bits}; }
  static ScalarOperand of_constant(int64_t c, int bits = 64) {
    return {Kind::kConstant, kNoVariable, static_cast<uint64_t>(c), bits};
  }
  static ScalarOperand unknown() { return {Kind::kUnknown, kNoVariable, 0, 64}; }
};

struct ScalarInst {
  ScalarOp op = ScalarOp::kNone;
  int bits = 64;  // width of the operation and of what it writes
  Condition condition = Condition::kAlways;
  ScalarOperand a, b;
  ScalarOperand high_word;  // dividends have one of their own
  int64_t scale = 1, displacement = 0;
  Variable dst = kNoVariable, high = kNoVariable;
  bool sets_flags = false, carry_unknown = false;  // the latter: of the flags that it sets
  std::vector<Variable> clobbers;                  // becomes unknown

  // Calls f for each variable that it reads or writes.
  template <typename F>
  void for_each_use(const F& f) const;
  template <typename F>
  void for_each_def(const F& f) const;
};

using ScalarState = std::vector<ScalarValue>;
void execute(const ScalarInst& inst, ScalarState& state);
// Returns whether the flags meet the condition; nothing if they are unknown.
[[nodiscard]] std::optional<bool> holds(Condition condition, const ScalarValue& flags);

// ---- template definitions ----
template <typename F>
void ScalarInst::for_each_use(const F& f) const {
  for (const ScalarOperand* operand : {&a, &b, &high_word}) {
    if (operand->kind == ScalarOperand::Kind::kVariable) f(operand->variable);
  }
  if (condition != Condition::kAlways) f(kFlags);
  if (bits < 32 && dst >= kFirstRegister && dst < kFirstWord)
    f(dst);  // the rest of the register stays
}
template <typename F>
void ScalarInst::for_each_def(const F& f) const {
  if (dst != kNoVariable) f(dst);
  if (high != kNoVariable) f(high);
  if (sets_flags) f(kFlags);
  for (const Variable v : clobbers) f(v);
}

}  // namespace hone::backend::cpu
