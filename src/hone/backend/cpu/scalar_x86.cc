#include "hone/backend/cpu/scalar_x86.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace hone::backend::cpu {
namespace {

using Kind = ScalarOperand::Kind;
constexpr int64_t kWord = 8;        // bytes of a push
constexpr size_t kMemoryParts = 5;  // base, scale, index, displacement, segment

// The order of registers in this file.
constexpr std::string_view kLegacy[] = {"AX", "CX", "DX", "BX", "SP", "BP", "SI", "DI"};
constexpr Variable kAx = kFirstRegister, kCx = kAx + 1, kDx = kAx + 2, kSp = kAx + 4, kBp = kAx + 5;

Condition condition_of(int64_t code) {
  constexpr std::array<Condition, 16> kConditions = {
      Condition::kOverflow,    Condition::kNoOverflow,   Condition::kBelow,
      Condition::kAboveEqual,  Condition::kEqual,        Condition::kNotEqual,
      Condition::kBelowEqual,  Condition::kAbove,        Condition::kNegative,
      Condition::kNotNegative, Condition::kUnknown,      Condition::kUnknown,
      Condition::kLess,        Condition::kGreaterEqual, Condition::kLessEqual,
      Condition::kGreater};
  return code >= 0 && code < 16 ? kConditions[static_cast<size_t>(code)] : Condition::kUnknown;
}

// An opcode such as ADD64ri32 in its parts.
struct Opcode {
  std::string_view name;  // ADD
  int bits = 0;           // 64; 0: it has no number
  std::string_view form;  // ri32
};
Opcode parts_of(std::string_view opcode) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto first = std::find_if(opcode.begin(), opcode.end(), digit);
  const auto last = std::find_if_not(first, opcode.end(), digit);
  Opcode parts;
  parts.name = opcode.substr(0, static_cast<size_t>(first - opcode.begin()));
  std::from_chars(opcode.data() + (first - opcode.begin()), opcode.data() + (last - opcode.begin()),
                  parts.bits);
  parts.form = opcode.substr(static_cast<size_t>(last - opcode.begin()));
  return parts;
}

struct Arithmetic {
  std::string_view name;
  ScalarOp op;
};
constexpr Arithmetic kBinary[] = {{"ADD", ScalarOp::kAdd},    {"SUB", ScalarOp::kSub},
                                  {"AND", ScalarOp::kAnd},    {"OR", ScalarOp::kOr},
                                  {"XOR", ScalarOp::kXor},    {"IMUL", ScalarOp::kMul},
                                  {"ANDN", ScalarOp::kAndNot}};
constexpr Arithmetic kShifts[] = {{"SHL", ScalarOp::kShiftLeft},
                                  {"SHR", ScalarOp::kShiftRight},
                                  {"SAR", ScalarOp::kShiftRightSigned}};
template <size_t N>
const Arithmetic* find(const Arithmetic (&table)[N], std::string_view name) {
  const auto found = std::find_if(std::begin(table), std::end(table),
                                  [&](const Arithmetic& a) { return a.name == name; });
  return found == std::end(table) ? nullptr : found;
}

// Decodes one instruction.
class Decoder {
 public:
  Decoder(const Instruction& code, StackPlace& place, StackWords& words)
      : code_(code), parts_(parts_of(code.opcode)), place_(place), words_(words) {
    inst_.bits = parts_.bits;
  }

  // Returns whether it knows the instruction.
  bool decode() {
    return binary() || compare() || move() || extend() || unary() || shift() || choose() ||
           address() || multiply() || divide() || widen();
  }
  [[nodiscard]] const ScalarInst& inst() const { return inst_; }

 private:
  [[nodiscard]] bool form_is(std::string_view beginning) const {
    return parts_.form.starts_with(beginning);
  }
  [[nodiscard]] const CodeOperand& part(size_t i) const { return code_.operands.at(i); }
  [[nodiscard]] ScalarOperand reg(size_t i, int bits) const {
    const Variable v = register_x86(part(i).reg);
    const bool high_byte = part(i).reg.size() == 2 && part(i).reg[1] == 'H';
    return v == kNoVariable || high_byte ? ScalarOperand::unknown() : ScalarOperand::of(v, bits);
  }
  [[nodiscard]] ScalarOperand number(size_t i, int bits) const {
    return ScalarOperand::of_constant(part(i).number, bits);
  }
  // Returns the word of the stack that the operand from part i on names, or nothing.
  [[nodiscard]] Variable word(size_t i) const {
    if (!part(i + 2).reg.empty()) return kNoVariable;
    const Variable base = register_x86(part(i).reg);
    if (base == kSp) return words_.at(place_.pointer + part(i + 3).number);
    if (base == kBp && place_.frame) return words_.at(*place_.frame + part(i + 3).number);
    return kNoVariable;
  }
  [[nodiscard]] ScalarOperand memory(size_t i, int bits) const {
    const Variable v = word(i);
    return v == kNoVariable ? ScalarOperand::unknown() : ScalarOperand::of(v, bits);
  }
  void writes_register(size_t i) { inst_.dst = register_x86(part(i).reg); }

  bool binary() {
    const Arithmetic* found = find(kBinary, parts_.name);
    const int bits = parts_.bits;
    if (found == nullptr || bits == 0) return false;
    inst_.op = found->op;
    inst_.sets_flags = true;
    if (form_is("rri")) {  // imul
      writes_register(0), inst_.a = reg(1, bits), inst_.b = number(2, bits);
    } else if (form_is("rmi")) {
      writes_register(0), inst_.a = memory(1, bits), inst_.b = number(6, bits);
    } else if (form_is("rr")) {
      writes_register(0), inst_.a = reg(1, bits), inst_.b = reg(2, bits);
    } else if (form_is("ri")) {
      writes_register(0), inst_.a = reg(1, bits), inst_.b = number(2, bits);
    } else if (form_is("rm")) {
      writes_register(0), inst_.a = reg(1, bits), inst_.b = memory(2, bits);
    } else if (form_is("mr") || form_is("mi")) {
      inst_.dst = word(0), inst_.a = memory(0, bits);
      inst_.b = form_is("mr") ? reg(kMemoryParts, bits) : number(kMemoryParts, bits);
    } else if (form_is("i")) {
      inst_.dst = kAx, inst_.a = ScalarOperand::of(kAx, bits), inst_.b = number(0, bits);
    } else {
      return false;
    }
    return true;
  }

  bool compare() {
    const bool is_test = parts_.name == "TEST";
    if ((parts_.name != "CMP" && !is_test) || parts_.bits == 0) return false;
    const int bits = parts_.bits;
    inst_.op = is_test ? ScalarOp::kAnd : ScalarOp::kSub;
    inst_.sets_flags = true;
    if (form_is("rr")) {
      inst_.a = reg(0, bits), inst_.b = reg(1, bits);
    } else if (form_is("ri")) {
      inst_.a = reg(0, bits), inst_.b = number(1, bits);
    } else if (form_is("rm")) {
      inst_.a = reg(0, bits), inst_.b = memory(1, bits);
    } else if (form_is("mr")) {
      inst_.a = memory(0, bits), inst_.b = reg(kMemoryParts, bits);
    } else if (form_is("mi")) {
      inst_.a = memory(0, bits), inst_.b = number(kMemoryParts, bits);
    } else if (form_is("i")) {
      inst_.a = ScalarOperand::of(kAx, bits), inst_.b = number(0, bits);
    } else {
      return false;
    }
    return true;
  }

  bool move() {
    if (parts_.name != "MOV" || parts_.bits == 0) return false;
    const int bits = parts_.bits;
    inst_.op = ScalarOp::kMove;
    if (form_is("rr")) {
      writes_register(0), inst_.a = reg(1, bits);
    } else if (form_is("ri")) {
      writes_register(0), inst_.a = number(1, bits);
    } else if (form_is("rm")) {
      writes_register(0), inst_.a = memory(1, bits);
    } else if (form_is("mr")) {
      inst_.dst = word(0), inst_.a = reg(kMemoryParts, bits);
    } else if (form_is("mi")) {
      inst_.dst = word(0), inst_.a = number(kMemoryParts, bits);
    } else {
      return false;
    }
    return true;
  }

  bool extend() {
    const bool is_signed = parts_.name == "MOVSX";
    if (parts_.name != "MOVZX" && !is_signed) return false;
    const std::string_view from = parts_.form.substr(2);  // rr32
    const int bits = from.starts_with("32") ? 32 : from.starts_with("16") ? 16 : 8;
    inst_.op = is_signed ? ScalarOp::kSignExtend : ScalarOp::kMove;
    writes_register(0);
    inst_.a = form_is("rr") ? reg(1, bits) : memory(1, bits);
    return true;
  }

  bool unary() {
    const std::string_view name = parts_.name;
    const bool counts = name == "INC" || name == "DEC";
    if ((!counts && name != "NEG" && name != "NOT") || parts_.bits == 0) return false;
    const int bits = parts_.bits;
    const bool in_memory = form_is("m");
    if (in_memory) {
      inst_.dst = word(0), inst_.a = memory(0, bits);
    } else {
      writes_register(0), inst_.a = reg(1, bits);
    }
    inst_.sets_flags = name != "NOT";
    inst_.carry_unknown = counts;
    inst_.op = name == "NOT" ? ScalarOp::kNot : name == "INC" ? ScalarOp::kAdd : ScalarOp::kSub;
    if (counts) inst_.b = ScalarOperand::of_constant(1, bits);
    if (name == "NEG") inst_.b = inst_.a, inst_.a = ScalarOperand::of_constant(0, bits);
    return true;
  }

  bool shift() {
    const int bits = parts_.bits;
    const bool apart = parts_.name.size() == 4 && parts_.name.ends_with('X');  // shlx
    const Arithmetic* found = find(kShifts, parts_.name.substr(0, 3));
    if (found == nullptr || bits == 0 || (!apart && parts_.name.size() != 3)) return false;
    inst_.op = found->op;
    if (apart) {
      writes_register(0);
      inst_.a = form_is("rr") ? reg(1, bits) : memory(1, bits);
      inst_.b = reg(form_is("rr") ? 2 : 6, bits);
      return true;
    }
    inst_.sets_flags = inst_.carry_unknown = true;
    const bool in_memory = form_is("m");
    const size_t at = in_memory ? kMemoryParts : 2;
    if (in_memory) {
      inst_.dst = word(0), inst_.a = memory(0, bits);
    } else {
      writes_register(0), inst_.a = reg(1, bits);
    }
    const std::string_view by = parts_.form.substr(1);
    inst_.b = by == "CL"  ? ScalarOperand::of(kCx, 8)
              : by == "1" ? ScalarOperand::of_constant(1)
                          : number(at, 8);
    return true;
  }

  bool choose() {
    const int bits = parts_.bits;
    if (parts_.name == "CMOV") {
      inst_.op = ScalarOp::kSelect;
      writes_register(0), inst_.a = reg(1, bits);
      inst_.b = form_is("rr") ? reg(2, bits) : memory(2, bits);
      inst_.condition = condition_of(part(form_is("rr") ? 3 : 7).number);
      return true;
    }
    if (code_.opcode != "SETCCr" && code_.opcode != "SETCCm") return false;
    inst_.op = ScalarOp::kSet, inst_.bits = 8;
    const bool in_memory = code_.opcode == "SETCCm";
    inst_.dst = in_memory ? word(0) : register_x86(part(0).reg);
    inst_.condition = condition_of(part(in_memory ? kMemoryParts : 1).number);
    return true;
  }

  bool address() {
    if (parts_.name != "LEA") return false;
    inst_.op = ScalarOp::kAddress;
    inst_.bits = code_.opcode == "LEA64r" ? 64 : 32;
    writes_register(0);
    inst_.a = part(1).reg.empty() ? ScalarOperand::of_constant(0) : pointer(1);
    if (!part(3).reg.empty()) inst_.b = reg(3, 64);
    inst_.scale = part(2).number, inst_.displacement = part(4).number;
    return true;
  }
  // Returns a base register, which may be the stack's, of known value.
  [[nodiscard]] ScalarOperand pointer(size_t i) const {
    return register_x86(part(i).reg) == kSp ? ScalarOperand::of_constant(place_.pointer)
                                            : reg(i, 64);
  }

  bool multiply() {
    const int bits = parts_.bits;
    if (parts_.name == "MULX") {
      inst_.op = ScalarOp::kMulHighUnsigned;
      inst_.high = register_x86(part(0).reg), inst_.dst = register_x86(part(1).reg);
      inst_.a = ScalarOperand::of(kDx, bits);
      inst_.b = form_is("rr") ? reg(2, bits) : memory(2, bits);
      return true;
    }
    const bool one = parts_.form == "r" || parts_.form == "m";
    if ((parts_.name != "MUL" && parts_.name != "IMUL") || !one || bits < 32) return false;
    inst_.op = parts_.name == "MUL" ? ScalarOp::kMulHighUnsigned : ScalarOp::kMulHighSigned;
    inst_.dst = kAx, inst_.high = kDx, inst_.sets_flags = true;
    inst_.a = ScalarOperand::of(kAx, bits);
    inst_.b = form_is("r") ? reg(0, bits) : memory(0, bits);
    return true;
  }

  bool divide() {
    const int bits = parts_.bits;
    if ((parts_.name != "DIV" && parts_.name != "IDIV") || bits < 32) return false;
    inst_.op = parts_.name == "DIV" ? ScalarOp::kDivUnsigned : ScalarOp::kDivSigned;
    inst_.dst = kAx, inst_.high = kDx;
    inst_.a = ScalarOperand::of(kAx, bits), inst_.high_word = ScalarOperand::of(kDx, bits);
    inst_.b = form_is("r") ? reg(0, bits) : memory(0, bits);
    inst_.clobbers = {kFlags};
    return true;
  }

  bool widen() {  // of the accumulator, into itself or into the data register
    const bool quad = code_.opcode == "CQO", twice = code_.opcode == "CDQ";
    if (quad || twice) {
      inst_.bits = quad ? 64 : 32;
      inst_.op = ScalarOp::kShiftRightSigned, inst_.dst = kDx;
      inst_.a = ScalarOperand::of(kAx, inst_.bits);
      inst_.b = ScalarOperand::of_constant(inst_.bits - 1);
      return true;
    }
    if (code_.opcode != "CDQE") return false;
    inst_.bits = 64, inst_.op = ScalarOp::kSignExtend, inst_.dst = kAx;
    inst_.a = ScalarOperand::of(kAx, 32);
    return true;
  }

  const Instruction& code_;
  const Opcode parts_;
  StackPlace& place_;
  StackWords& words_;
  ScalarInst inst_;
};

// Decodes what pushes, pops or moves the stack. Returns whether it is such an instruction.
bool decode_stack(const Instruction& code, StackPlace& place, StackWords& words,
                  std::vector<ScalarInst>& out) {
  const Opcode parts = parts_of(code.opcode);
  if (parts.name == "PUSH") {
    place.pointer -= kWord;
    ScalarInst inst{.op = ScalarOp::kMove, .dst = words.at(place.pointer)};
    inst.a = parts.form == "r" ? ScalarOperand::of(register_x86(code.operands.at(0).reg))
             : parts.form.starts_with("i") ? ScalarOperand::of_constant(code.operands.at(0).number)
                                           : ScalarOperand::unknown();
    out.push_back(std::move(inst));
    return true;
  }
  if (parts.name == "POP") {
    const Variable to = register_x86(code.operands.at(0).reg);
    out.push_back({.op = ScalarOp::kMove,
                   .a = ScalarOperand::of(words.at(place.pointer)),
                   .dst = to == kSp ? kNoVariable : to});
    if (to == kBp) place.frame.reset();
    place.pointer += kWord;
    return true;
  }
  const bool moves_stack = std::any_of(code.defines.begin(), code.defines.end(),
                                       [](auto name) { return register_x86(name) == kSp; });
  if (code.opcode.starts_with("MOV64rr") && register_x86(code.operands.at(1).reg) == kSp) {
    const Variable to = register_x86(code.operands.at(0).reg);
    if (to == kBp) place.frame = place.pointer;
    out.push_back(
        {.op = ScalarOp::kMove, .a = ScalarOperand::of_constant(place.pointer), .dst = to});
    return true;
  }
  if (!moves_stack || code.flow != Flow::kNext) return false;
  if (parts.name == "SUB" && parts.form.starts_with("ri")) {
    place.pointer -= code.operands.at(2).number;
  } else if (parts.name == "ADD" && parts.form.starts_with("ri")) {
    place.pointer += code.operands.at(2).number;
  } else if (parts.name == "AND" && parts.form.starts_with("ri")) {
    place.pointer &= code.operands.at(2).number;
  } else if (parts.name == "LEA" && place.frame && register_x86(code.operands.at(1).reg) == kBp) {
    place.pointer = *place.frame + code.operands.at(4).number;
  } else if (code.opcode.starts_with("MOV64rr") && place.frame) {
    place.pointer = *place.frame;
  }
  out.push_back({.clobbers = {kFlags}});
  return true;
}

}  // namespace

Variable register_x86(std::string_view name) {
  if (name == "EFLAGS") return kFlags;
  if (name.size() >= 2 && name[0] == 'R' && name[1] >= '0' && name[1] <= '9') {
    int number = 0;  // R8 to R15 and their parts R8D, R8W, R8B
    const auto parsed = std::from_chars(name.data() + 1, name.data() + name.size(), number);
    const std::string_view rest(parsed.ptr,
                                static_cast<size_t>(name.data() + name.size() - parsed.ptr));
    const bool part = rest.empty() || rest == "D" || rest == "W" || rest == "B";
    return number >= 8 && number < 16 && part ? kFirstRegister + number : kNoVariable;
  }
  std::string_view core = name;
  if (core.size() == 3 && (core[0] == 'R' || core[0] == 'E')) core.remove_prefix(1);
  for (int i = 0; i < 8; ++i) {
    const std::string_view legacy = kLegacy[i];
    if (core == legacy) return kFirstRegister + i;
    if (name.size() == 2 && i < 4 && name[0] == legacy[0] && (name[1] == 'L' || name[1] == 'H'))
      return kFirstRegister + i;
    if (name.size() == 3 && i >= 4 && name.substr(0, 2) == legacy && name[2] == 'L')
      return kFirstRegister + i;
  }
  return kNoVariable;
}

Condition branch_condition_x86(const Instruction& code) {
  if (!code.opcode.starts_with("JCC") || code.operands.size() < 2) return Condition::kUnknown;
  return condition_of(code.operands[1].number);
}

void decode_x86(const Instruction& code, StackPlace& place, StackWords& words,
                std::vector<ScalarInst>& out) {
  if (code.flow == Flow::kReturn || code.flow == Flow::kJump || code.flow == Flow::kBranch) return;
  if (code.flow == Flow::kCall) {  // System V: these are the callee's to use
    ScalarInst call{.clobbers = {kFlags, kAx, kCx, kDx, kAx + 6, kAx + 7}};
    for (int i = 8; i < 12; ++i) call.clobbers.push_back(kFirstRegister + i);
    out.push_back(std::move(call));
    return;
  }
  if (decode_stack(code, place, words, out)) return;
  Decoder decoder(code, place, words);
  if (decoder.decode()) {
    const ScalarInst& inst = decoder.inst();
    if (inst.dst == kBp || inst.high == kBp) place.frame.reset();
    if (inst.dst != kNoVariable || inst.high != kNoVariable || inst.sets_flags) out.push_back(inst);
    return;
  }
  ScalarInst unknown;
  if (code.stores && code.operands.size() > kMemoryParts && code.operands[2].reg.empty()) {
    const Variable base = register_x86(code.operands[0].reg);
    if (base == kSp) unknown.clobbers.push_back(words.at(place.pointer + code.operands[3].number));
    if (base == kBp && place.frame)
      unknown.clobbers.push_back(words.at(*place.frame + code.operands[3].number));
  }
  for (const std::string_view name : code.defines) {
    const Variable v = register_x86(name);
    if (v != kNoVariable) unknown.clobbers.push_back(v);
    if (v == kBp) place.frame.reset();
  }
  if (!unknown.clobbers.empty()) out.push_back(std::move(unknown));
}

}  // namespace hone::backend::cpu
