#include "hone/ir/compute_instruction.h"

#include "hone/base/assert.h"
#include "hone/ir/gelu.h"
#include "hone/ir/scalar.h"

namespace hone::ir {

bool compute_instruction(const Instruction& i, Cell* r) {
  const Cell a = r[i.a], b = r[i.b];
  Cell& to = r[i.dst];
  const auto op = static_cast<Op>(i.aux);
  const auto type = static_cast<DType>(i.aux & 0xff), from = static_cast<DType>(i.aux >> 8);
  switch (i.code) {
    case Opcode::kDivI:
      if (b.i == 0) return false;
      to.i = apply_binary(Op::kDiv, a.i, b.i);
      break;
    case Opcode::kTyped: {
      const auto typed = static_cast<Op>(i.aux >> 8);
      if (is_division(typed) && b.i == 0) return false;
      to.i = apply_integer(typed, type, a.i, b.i);
      break;
    }
    case Opcode::kPowF: to.f = apply_binary(Op::kPow, a.f, b.f); break;
    case Opcode::kRemF: to.f = apply_binary(Op::kRem, a.f, b.f); break;
    case Opcode::kCompareU: to.i = compare_integers(op, DType::kU64, a.i, b.i); break;
    case Opcode::kUnaryI: to.i = apply_unary(op, a.i); break;
    case Opcode::kUnaryF: to.f = apply_unary(op, a.f); break;
    case Opcode::kGelu: to.f = gelu(a.f, i.aux != 0); break;
    case Opcode::kWrap: to.i = wrap_int(type, a.i); break;
    case Opcode::kIntToFloat: to.f = int_to_float(from, type, a.i); break;
    case Opcode::kFloatToInt: to.i = float_to_int(type, a.f); break;
    case Opcode::kRoundFloat: to.f = round_float(type, a.f); break;
    case Opcode::kBits: {
      const uint64_t bits = is_float(from) ? float_bits(from, a.f) : static_cast<uint64_t>(a.i);
      if (is_float(type)) {
        to.f = bits_float(type, bits);
      } else {
        to.i = wrap_int(type, static_cast<int64_t>(bits));
      }
      break;
    }
    default: HONE_ASSERT(false, "an instruction that the interpreter executes itself");
  }
  return true;
}

}  // namespace hone::ir
