#include "hone/backend/cpu/scalar_arm.h"

#include <algorithm>
#include <charconv>

#include "hone/backend/cpu/arm_lanes.h"
#include "hone/backend/cpu/arm_numbers.h"
#include "hone/backend/cpu/arm_words.h"

namespace hone::backend::cpu {
namespace {

constexpr Variable kFrame = kFirstRegister + 29;
// The four bits that Arm's conditions have.
Condition condition_of(int64_t code) {
  constexpr Condition kConditions[] = {
      Condition::kEqual,      Condition::kNotEqual,     Condition::kAboveEqual,
      Condition::kBelow,      Condition::kNegative,     Condition::kNotNegative,
      Condition::kOverflow,   Condition::kNoOverflow,   Condition::kAbove,
      Condition::kBelowEqual, Condition::kGreaterEqual, Condition::kLess,
      Condition::kGreater,    Condition::kLessEqual,    Condition::kAlways,
      Condition::kAlways};
  return code >= 0 && code < 16 ? kConditions[code] : Condition::kUnknown;
}

struct Operation {
  std::string_view name;
  ScalarOp op;
  bool sets_flags = false;
};
template <size_t N>
const Operation* find(const Operation (&table)[N], std::string_view name) {
  const auto found = std::find_if(std::begin(table), std::end(table),
                                  [&](const Operation& o) { return o.name == name; });
  return found == std::end(table) ? nullptr : found;
}

constexpr Operation kBinary[] = {{"ADD", ScalarOp::kAdd}, {"ADDS", ScalarOp::kAdd, true},
                                 {"SUB", ScalarOp::kSub}, {"SUBS", ScalarOp::kSub, true},
                                 {"AND", ScalarOp::kAnd}, {"ANDS", ScalarOp::kAnd, true},
                                 {"ORR", ScalarOp::kOr},  {"EOR", ScalarOp::kXor}};
constexpr Operation kInverted[] = {  // a and ~b
    {"BIC", ScalarOp::kAnd},
    {"BICS", ScalarOp::kAnd, true},
    {"ORN", ScalarOp::kOr},
    {"EON", ScalarOp::kXor}};
constexpr Operation kShifts[] = {{"LSLV", ScalarOp::kShiftLeft},
                                 {"LSRV", ScalarOp::kShiftRight},
                                 {"ASRV", ScalarOp::kShiftRightSigned}};
constexpr ScalarOp kShiftTypes[] = {ScalarOp::kShiftLeft, ScalarOp::kShiftRight,
                                    ScalarOp::kShiftRightSigned};

// An opcode such as ADDXri in its parts.
struct Opcode {
  std::string_view name;  // ADD
  int bits = 0;           // 64; 0 if it names no width of general registers
  int64_t bytes = 8;      // of the width that it names, which may be a vector's
  std::string_view form;  // ri
};
Opcode parts_of(std::string_view opcode) {
  const auto lower =
      std::find_if(opcode.begin(), opcode.end(), [](char c) { return (c >= 'a' && c <= 'z'); });
  const auto length = static_cast<size_t>(lower - opcode.begin());
  if (length < 2) return {};
  const char width = opcode[length - 1];
  Opcode parts{.name = opcode.substr(0, length - 1), .form = opcode.substr(length)};
  if (width == 'X' || width == 'W') parts.bits = width == 'X' ? 64 : 32;
  switch (width) {
    case 'Q': parts.bytes = 16; break;
    case 'W':
    case 'S': parts.bytes = 4; break;
    case 'H': parts.bytes = 2; break;
    case 'B': parts.bytes = 1; break;
    default: break;
  }
  return parts;
}

// Decodes one instruction.
class Decoder {
 public:
  Decoder(const Instruction& code, StackPlace& place, StackWords& words,
          std::vector<ScalarInst>& out)
      : code_(code), parts_(parts_of(code.opcode)), place_(place), words_(words), out_(out) {}

  // Returns whether it knows the instruction.
  bool decode() {
    return moves_stack() || loads_or_stores() || binary() || moves() || multiply() || divide() ||
           choose() || shift() || bit_field();
  }

 private:
  [[nodiscard]] const CodeOperand& part(size_t i) const { return code_.operands.at(i); }
  [[nodiscard]] bool names(size_t i, std::string_view reg) const { return part(i).reg == reg; }
  [[nodiscard]] ScalarOperand reg(size_t i, int bits) const {
    const std::string_view name = part(i).reg;
    if (name == "XZR" || name == "WZR") return ScalarOperand::of_constant(0, bits);
    if (name == "SP") return ScalarOperand::of_constant(place_.pointer, bits);
    const Variable v = register_arm(name);
    return v == kNoVariable ? ScalarOperand::unknown() : ScalarOperand::of(v, bits);
  }
  [[nodiscard]] Variable to(size_t i) const { return register_arm(part(i).reg); }
  // Returns a word for a result between two steps.
  Variable between() { return words_.at(kFirstResult + kWordBytes * results_++); }
  void add(ScalarOp op, int bits, ScalarOperand a, ScalarOperand b, Variable dst) {
    out_.push_back({.op = op, .bits = bits, .a = a, .b = b, .dst = dst});
  }
  ScalarOperand shifted(ScalarOperand value, ScalarOp op, int64_t count, int bits) {
    if (count == 0) return value;
    const Variable result = between();
    add(op, bits, value, ScalarOperand::of_constant(count), result);
    return ScalarOperand::of(result, bits);
  }
  ScalarOperand inverted(ScalarOperand value, int bits) {
    const Variable result = between();
    add(ScalarOp::kNot, bits, value, {}, result);
    return ScalarOperand::of(result, bits);
  }

  // Returns the second source of add, sub and the like, whose form says what it is.
  std::optional<ScalarOperand> second(size_t i, bool is_logical) {
    const int bits = parts_.bits;
    const std::string_view form = parts_.form;
    if (form == "rr") return reg(i, bits);
    if (form == "ri" && is_logical)
      return ScalarOperand::of_constant(static_cast<int64_t>(logical_number(part(i).number, bits)),
                                        bits);
    if (form == "ri") return ScalarOperand::of_constant(part(i).number << part(i + 1).number, bits);
    if (form == "rs") {
      const auto type = static_cast<size_t>(part(i + 1).number >> 6);
      const int64_t count = part(i + 1).number & 63;
      if (type >= std::size(kShiftTypes)) return ScalarOperand::unknown();  // a rotation
      return shifted(reg(i, bits), kShiftTypes[type], count, bits);
    }
    if (form == "rx" || form == "rx64") return extended(i, part(i + 1).number);
    return std::nullopt;
  }

  ScalarOperand extended(size_t i, int64_t how) {
    const int64_t type = how >> 3;
    const int from = 8 << (type & 3);
    ScalarOperand value = reg(i, std::min(from, 64));
    if (from < 64) {
      const Variable result = between();
      add(type >= 4 ? ScalarOp::kSignExtend : ScalarOp::kMove, 64, value, {}, result);
      value = ScalarOperand::of(result, parts_.bits);
    }
    return shifted(value, ScalarOp::kShiftLeft, how & 7, parts_.bits);
  }

  bool binary() {
    const Operation* plain = find(kBinary, parts_.name);
    const Operation* found = plain != nullptr ? plain : find(kInverted, parts_.name);
    if (found == nullptr || parts_.bits == 0) return false;
    const bool adds = found->op == ScalarOp::kAdd || found->op == ScalarOp::kSub;
    std::optional<ScalarOperand> b = second(2, !adds);
    if (!b) return false;
    if (plain == nullptr) b = inverted(*b, parts_.bits);
    ScalarInst inst{.op = found->op, .bits = parts_.bits, .a = reg(1, parts_.bits), .b = *b};
    inst.dst = to(0);
    inst.sets_flags = found->sets_flags;
    // A carry out of a sum is not the borrow that conditions are about.
    inst.carry_unknown = found->op != ScalarOp::kSub;
    if (inst.dst == kFrame) place_.frame.reset();
    out_.push_back(inst);
    return true;
  }

  bool moves() {
    const std::string_view name = parts_.name;
    const int bits = parts_.bits;
    if ((name != "MOVZ" && name != "MOVN" && name != "MOVK") || bits == 0) return false;
    if (name != "MOVK") {
      const auto number = static_cast<uint64_t>(part(1).number) << part(2).number;
      const auto word = static_cast<int64_t>(name == "MOVZ" ? number : ~number);
      add(ScalarOp::kMove, bits, ScalarOperand::of_constant(word, bits), {}, to(0));
      return true;
    }
    const int64_t shift = part(3).number;
    const auto hole = static_cast<int64_t>(~(uint64_t{0xffff} << shift));
    const auto number = static_cast<int64_t>(static_cast<uint64_t>(part(2).number) << shift);
    const Variable rest = between();
    add(ScalarOp::kAnd, bits, reg(1, bits), ScalarOperand::of_constant(hole, bits), rest);
    add(ScalarOp::kOr, bits, ScalarOperand::of(rest, bits),
        ScalarOperand::of_constant(number, bits), to(0));
    return true;
  }

  bool multiply() {
    const std::string_view opcode = code_.opcode;
    if (opcode == "UMULHrr" || opcode == "SMULHrr") {
      ScalarInst inst{
          .op = opcode == "UMULHrr" ? ScalarOp::kMulHighUnsigned : ScalarOp::kMulHighSigned,
          .a = reg(1, 64),
          .b = reg(2, 64)};
      inst.high = to(0);
      out_.push_back(inst);
      return true;
    }
    const bool is_long = opcode == "SMADDLrrr" || opcode == "UMADDLrrr" || opcode == "SMSUBLrrr" ||
                         opcode == "UMSUBLrrr";
    const bool subtracts = opcode.find("SUB") != std::string_view::npos;
    if (!is_long && parts_.name != "MADD" && parts_.name != "MSUB") return false;
    const int bits = is_long ? 64 : parts_.bits;
    ScalarOperand factors[2] = {reg(1, bits), reg(2, bits)};
    for (size_t i = 0; is_long && i < 2; ++i) {
      const Variable wide = between();
      add(opcode[0] == 'S' ? ScalarOp::kSignExtend : ScalarOp::kMove, 64, reg(i + 1, 32), {}, wide);
      factors[i] = ScalarOperand::of(wide);
    }
    const Variable product = between();
    add(ScalarOp::kMul, bits, factors[0], factors[1], product);
    add(subtracts ? ScalarOp::kSub : ScalarOp::kAdd, bits, reg(3, bits),
        ScalarOperand::of(product, bits), to(0));
    return true;
  }

  bool divide() {
    const int bits = parts_.bits;
    const bool is_signed = parts_.name == "SDIV";
    if ((!is_signed && parts_.name != "UDIV") || bits == 0) return false;
    ScalarInst inst{.op = is_signed ? ScalarOp::kDivSigned : ScalarOp::kDivUnsigned, .bits = bits};
    inst.a = reg(1, bits), inst.b = reg(2, bits);
    inst.high_word = is_signed ? shifted(inst.a, ScalarOp::kShiftRightSigned, bits - 1, bits)
                               : ScalarOperand::of_constant(0, bits);
    inst.dst = to(0);
    out_.push_back(inst);
    return true;
  }

  bool choose() {  // the first source if the condition holds, else what becomes of the second
    const std::string_view name = parts_.name;
    const int bits = parts_.bits;
    if ((name != "CSEL" && name != "CSINC" && name != "CSINV" && name != "CSNEG") || bits == 0)
      return false;
    ScalarOperand other = reg(2, bits);
    if (name == "CSINV") other = inverted(other, bits);
    if (name == "CSINC" || name == "CSNEG") {
      const bool counts = name == "CSINC";
      const Variable result = between();
      add(counts ? ScalarOp::kAdd : ScalarOp::kSub, bits,
          counts ? other : ScalarOperand::of_constant(0, bits),
          counts ? ScalarOperand::of_constant(1, bits) : other, result);
      other = ScalarOperand::of(result, bits);
    }
    ScalarInst inst{.op = ScalarOp::kSelect, .bits = bits, .a = other, .b = reg(1, bits)};
    inst.condition = condition_of(part(3).number);
    inst.dst = to(0);
    out_.push_back(inst);
    return true;
  }

  bool shift() {
    const Operation* found = find(kShifts, parts_.name);
    if (found == nullptr || parts_.bits == 0) return false;
    add(found->op, parts_.bits, reg(1, parts_.bits), reg(2, parts_.bits), to(0));
    return true;
  }

  // Shifts by numbers, extensions, and parts of a word: all bits above the field go, then those
  // below it.
  bool bit_field() {
    const bool is_signed = parts_.name == "SBFM";
    const int bits = parts_.bits;
    if ((!is_signed && parts_.name != "UBFM") || bits == 0) return false;
    const int64_t rotation = part(2).number, top = part(3).number;
    const int64_t up = bits - 1 - top;
    const int64_t down = top >= rotation ? up + rotation : rotation - 1 - top;
    const ScalarOperand high = shifted(reg(1, bits), ScalarOp::kShiftLeft, up, bits);
    add(is_signed ? ScalarOp::kShiftRightSigned : ScalarOp::kShiftRight, bits, high,
        ScalarOperand::of_constant(down), to(0));
    return true;
  }

  // Returns the address that operand i, a base register, has on the stack.
  [[nodiscard]] std::optional<int64_t> stack_address(size_t i) const {
    if (names(i, "SP")) return place_.pointer;
    if (names(i, "FP")) return place_.frame;
    return std::nullopt;
  }

  // Loads and stores of one or two general registers; the pointer is moved before or behind.
  bool loads_or_stores() {
    const std::string_view name = parts_.name;
    const bool pair = name == "LDP" || name == "STP";
    const bool by_bytes = name == "LDUR" || name == "STUR";
    const bool sign = code_.opcode.starts_with("LDRSWui");
    const bool one = name == "LDR" || name == "STR" || by_bytes;
    if (!sign && ((!pair && !one) || parts_.bits == 0)) return false;
    const int bits = sign ? 32 : parts_.bits;
    const bool pre = parts_.form == "pre", post = parts_.form == "post";
    if (!pre && !post && parts_.form != "i" && parts_.form != "ui") return false;
    const size_t first = pre || post ? 1 : 0, count = pair ? 2 : 1, base = first + count;
    const bool scaled = pair || parts_.form == "ui";
    const int64_t distance = part(base + 1).number * (scaled ? bits / 8 : 1);
    const std::optional<int64_t> start = stack_address(base);
    if (!start || ((pre || post) && !names(base, "SP"))) return false;
    for (size_t i = 0; i < count; ++i) {
      const int64_t at = *start + (post ? 0 : distance) + static_cast<int64_t>(i) * (bits / 8);
      const Variable word = words_.at(at);
      if (code_.stores) {
        add(ScalarOp::kMove, bits, reg(first + i, bits), {}, word);
      } else {
        add(sign ? ScalarOp::kSignExtend : ScalarOp::kMove, sign ? 64 : bits,
            ScalarOperand::of(word, bits), {}, to(first + i));
        if (to(first + i) == kFrame) place_.frame.reset();
      }
    }
    if (pre || post) place_.pointer += distance;
    return true;
  }

  // Moves the stack's pointer or the frame's, and notes a register that is about to become the
  // former.
  bool moves_stack() {
    const std::string_view opcode = code_.opcode;
    if (opcode == "ANDXri" && names(0, "SP")) {
      if (place_.unaligned)
        place_.pointer =
            *place_.unaligned & static_cast<int64_t>(logical_number(part(2).number, 64));
      return true;
    }
    const bool adds = opcode == "ADDXri", subtracts = opcode == "SUBXri";
    if (!adds && !subtracts) return vector_moves_stack();
    const std::optional<int64_t> start = stack_address(1);
    if (!start) return false;
    const int64_t distance = part(2).number << part(3).number;
    const int64_t now = adds ? *start + distance : *start - distance;
    if (names(0, "SP")) {
      place_.pointer = now;
      return true;
    }
    if (names(0, "FP"))
      place_.frame = now;
    else
      place_.unaligned = now;
    add(ScalarOp::kMove, 64, ScalarOperand::of_constant(now), {}, to(0));
    return true;
  }
  // A vector that is pushed or popped.
  bool vector_moves_stack() {
    const bool pre = parts_.form == "pre", post = parts_.form == "post";
    if ((!pre && !post) || parts_.bits != 0 || !names(0, "SP")) return false;
    const bool pair = parts_.name == "LDP" || parts_.name == "STP";
    place_.pointer += part(pair ? 4 : 3).number * (pair ? parts_.bytes : 1);
    return true;
  }

  const Instruction& code_;
  const Opcode parts_;
  StackPlace& place_;
  StackWords& words_;
  std::vector<ScalarInst>& out_;
  int64_t results_ = 0;
};

// Returns the words of the stack into which a vector or a part of a word is stored.
std::vector<Variable> stored_words(const Instruction& code, const StackPlace& place,
                                   StackWords& words) {
  std::vector<Variable> stored;
  const int64_t bytes = parts_of(code.opcode).bytes;
  const bool pair = code.opcode.starts_with("STP");
  const bool scaled = pair || code.opcode.ends_with("ui");
  for (size_t i = 0; i + 1 < code.operands.size(); ++i) {
    const std::string_view base = code.operands[i].reg;
    const bool on_stack = base == "SP" || (base == "FP" && place.frame);
    if (!on_stack || !code.operands[i + 1].reg.empty()) continue;
    const int64_t from = (base == "SP" ? place.pointer : *place.frame) +
                         code.operands[i + 1].number * (scaled ? bytes : 1);
    for (int64_t at = 0; at < (pair ? 2 : 1) * bytes; at += std::min<int64_t>(bytes, 8))
      stored.push_back(words.at(from + at));
  }
  return stored;
}

}  // namespace

Variable register_arm(std::string_view name) {
  if (name == "NZCV") return kFlags;
  if (name == "FP") return kFrame;
  if (name == "LR") return kFrame + 1;
  if (name.size() < 2 || (name[0] != 'X' && name[0] != 'W')) return kNoVariable;
  int number = -1;
  const auto parsed = std::from_chars(name.data() + 1, name.data() + name.size(), number);
  const bool whole = parsed.ptr == name.data() + name.size();
  return whole && number >= 0 && number <= 30 ? kFirstRegister + number : kNoVariable;
}

ScalarInst begin_block_arm(StackWords& words) {
  return {.op = ScalarOp::kMove, .a = ScalarOperand::of(words.at(kFlagsWord)), .dst = kFlags};
}

Condition end_block_arm(const Instruction& last, StackWords& words, std::vector<ScalarInst>& out) {
  out.push_back(
      {.op = ScalarOp::kMove, .a = ScalarOperand::of(kFlags), .dst = words.at(kFlagsWord)});
  if (last.flow != Flow::kBranch) return Condition::kAlways;
  const std::string_view opcode = last.opcode;
  if (opcode == "Bcc") return condition_of(last.operands.at(0).number);
  const bool tests_bit = opcode.starts_with("TB");
  const bool if_zero = opcode.starts_with("CBZ") || opcode.starts_with("TBZ");
  if (!if_zero && !opcode.starts_with("CBNZ") && !opcode.starts_with("TBNZ"))
    return Condition::kUnknown;
  const int bits = opcode.ends_with('X') ? 64 : 32;
  ScalarInst test{.op = tests_bit ? ScalarOp::kAnd : ScalarOp::kSub, .bits = bits};
  const Variable tested = register_arm(last.operands.at(0).reg);
  test.a =
      tested == kNoVariable ? ScalarOperand::of_constant(0, bits) : ScalarOperand::of(tested, bits);
  const int64_t bit = tests_bit ? last.operands.at(1).number : 0;
  test.b =
      ScalarOperand::of_constant(tests_bit ? static_cast<int64_t>(uint64_t{1} << bit) : 0, bits);
  test.sets_flags = true;
  out.push_back(test);
  return if_zero ? Condition::kEqual : Condition::kNotEqual;
}

void decode_arm(const Instruction& code, StackPlace& place, StackWords& words,
                std::vector<ScalarInst>& out) {
  if (code.flow == Flow::kReturn || code.flow == Flow::kJump || code.flow == Flow::kBranch) return;
  if (code.flow == Flow::kCall) {  // AAPCS64: these are the callee's to use
    ScalarInst call{.clobbers = {kFlags, kFrame + 1}};
    for (int i = 0; i <= 18; ++i) call.clobbers.push_back(kFirstRegister + i);
    out.push_back(std::move(call));
    return;
  }
  if (Decoder(code, place, words, out).decode()) return;
  follow_lanes(code, words, out);
  ScalarInst unknown;
  if (code.stores) unknown.clobbers = stored_words(code, place, words);
  for (const std::string_view name : code.defines) {
    const Variable v = register_arm(name);
    if (v != kNoVariable) unknown.clobbers.push_back(v);
    if (v == kFrame) place.frame.reset();
  }
  if (!unknown.clobbers.empty()) out.push_back(std::move(unknown));
}

}  // namespace hone::backend::cpu
