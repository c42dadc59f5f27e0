// backend/cpu/scalar_x86.h - says what x86-64 instructions do to scalar values (scalar_inst.h).
#pragma once

#include "hone/backend/cpu/machine_code.h"
#include "hone/backend/cpu/stack_words.h"

namespace hone::backend::cpu {

// Appends what an instruction does, and moves `place` where it changes the stack's pointer.
// Instructions that it doesn't know make all that they write unknown.
void decode_x86(const Instruction& code, StackPlace& place, StackWords& words,
                std::vector<ScalarInst>& out);
// Returns the condition of a conditional branch.
[[nodiscard]] Condition branch_condition_x86(const Instruction& code);
// Returns the variable of a register of any width; kNoVariable if it is no general register, and
// kFlags for the flags.
[[nodiscard]] Variable register_x86(std::string_view name);

}  // namespace hone::backend::cpu
