// ir/compute_instruction.h - the arithmetic of the instructions that are rare.
#pragma once

#include "hone/ir/bytecode.h"

namespace hone::ir {

// Executes an integer division, a function or an operation of another type than the usual ones,
// with registers `r`. Returns false after a division by zero.
[[nodiscard]] bool compute_instruction(const Instruction& i, Cell* r);

}  // namespace hone::ir
