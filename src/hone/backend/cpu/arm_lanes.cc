#include "hone/backend/cpu/arm_lanes.h"

#include <charconv>

#include "hone/backend/cpu/arm_words.h"
#include "hone/backend/cpu/scalar_arm.h"

namespace hone::backend::cpu {
namespace {

// Returns the number of a vector register, such as 18 of Q18 or S18; -1 for others.
int vector_number(std::string_view name) {
  constexpr std::string_view kWidths = "QDSHB";
  int number = -1;
  if (name.size() < 2 || kWidths.find(name[0]) == std::string_view::npos) return number;
  std::from_chars(name.data() + 1, name.data() + name.size(), number);
  return number;
}

}  // namespace

void follow_lanes(const Instruction& code, StackWords& words, std::vector<ScalarInst>& out) {
  const std::string_view opcode = code.opcode;
  if (code.operands.size() < 2) return;
  const std::string_view to = code.operands[0].reg, from = code.operands[1].reg;
  const auto lanes = [&](std::string_view name) {
    return words.at(kFirstLanes + kWordBytes * vector_number(name));
  };
  const bool passes = opcode.starts_with("CMGTv") || opcode.starts_with("CMHIv") ||
                      opcode == "ANDv16i8" || opcode == "ANDv8i8" || opcode.starts_with("ADDVv");
  if (opcode.starts_with("DUPv") && opcode.ends_with("gpr")) {
    const Variable v = register_arm(from);
    if (v == kNoVariable || vector_number(to) < 0) return;
    const Variable number = lanes(to), sign = words.at(kFirstResult);
    out.push_back({.op = ScalarOp::kSignExtend, .a = ScalarOperand::of(v, 32), .dst = number});
    out.push_back({.op = ScalarOp::kShiftRightSigned,
                   .a = ScalarOperand::of(number),
                   .b = ScalarOperand::of_constant(63),
                   .dst = sign});
    out.push_back({.op = ScalarOp::kAndNot,  // no lane if it is negative
                   .a = ScalarOperand::of(sign),
                   .b = ScalarOperand::of(number),
                   .dst = number});
  } else if (passes && vector_number(to) >= 0 && vector_number(from) >= 0) {
    out.push_back({.op = ScalarOp::kMove, .a = ScalarOperand::of(lanes(from)), .dst = lanes(to)});
  } else if (opcode == "FMOVSWr" && vector_number(from) >= 0) {
    const Variable v = register_arm(to);
    if (v == kNoVariable) return;
    const Variable mask = words.at(kFirstMask + kWordBytes * v);
    out.push_back({.op = ScalarOp::kShiftLeft,
                   .a = ScalarOperand::of_constant(1),
                   .b = ScalarOperand::of(lanes(from)),
                   .dst = mask});
    out.push_back({.op = ScalarOp::kSub,
                   .a = ScalarOperand::of(mask),
                   .b = ScalarOperand::of_constant(1),
                   .dst = mask});
  }
}

BranchGuess guess_branch_arm(const Instruction& last, StackWords& words) {
  const std::string_view opcode = last.opcode;
  const bool bit = opcode.starts_with("TB");
  if (!bit && !opcode.starts_with("CB")) return {};
  const Variable tested = register_arm(last.operands.at(0).reg);
  if (tested == kNoVariable) return {};
  return {.variable = words.at(kFirstMask + kWordBytes * tested),
          .bits = bit ? uint64_t{1} << last.operands.at(1).number : ~uint64_t{0},
          .if_set = opcode.starts_with("TBNZ") || opcode.starts_with("CBNZ")};
}

}  // namespace hone::backend::cpu
