// backend/cpu/arm_lanes.h - guesses how many lanes of NEON's vectors are active. NEON has no
// accesses under a mask: LLVM makes a branch for each lane, on a bit of a word that it gathers from
// a comparison of vectors. Of the comparison with a number N in all lanes it is assumed that the
// other operand is 0, 1, 2, ..., so that the first N lanes are active, as those of a tail are.
#pragma once

#include "hone/backend/cpu/control_slice.h"

namespace hone::backend::cpu {

// Appends what an instruction does to the number of active lanes, on its way from a general
// register to the mask in another one.
void follow_lanes(const Instruction& code, StackWords& words, std::vector<ScalarInst>& out);
// Returns what to guess of the branch at the end of a block.
[[nodiscard]] BranchGuess guess_branch_arm(const Instruction& last, StackWords& words);

}  // namespace hone::backend::cpu
