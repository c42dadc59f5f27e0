// backend/cpu/scalar_arm.h - says what instructions of 64-bit Arm do to scalar values
// (scalar_inst.h). One of theirs may be several of those, with made-up words between them.
#pragma once

#include <span>

#include "hone/backend/cpu/control_slice.h"

namespace hone::backend::cpu {

// Returns whether code for the processor is that of 64-bit Arm.
[[nodiscard]] inline bool is_arm_code(const target::Cpu& target) {
  return target.triple.starts_with("aarch64");
}
// Appends what an instruction does, and moves `place` where it changes the stack's pointer.
// Instructions that it doesn't know make all that they write unknown.
void decode_arm(const Instruction& code, StackPlace& place, StackWords& words,
                std::vector<ScalarInst>& out);
// Returns the condition of a conditional branch, on the flags behind what this appends: a branch
// that tests a register leaves the flags alone, so they are kept in a word meanwhile, from which
// begin_block_arm() takes them back.
[[nodiscard]] Condition end_block_arm(const Instruction& last, StackWords& words,
                                      std::vector<ScalarInst>& out);
[[nodiscard]] ScalarInst begin_block_arm(StackWords& words);
// Returns the variable of a general register of any width, kFlags for the flags, and kNoVariable
// for all others.
[[nodiscard]] Variable register_arm(std::string_view name);

}  // namespace hone::backend::cpu
