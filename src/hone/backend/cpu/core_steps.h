// backend/cpu/core_steps.h - turns machine code into the steps of the list scheduler
// (list_schedule.h).
#pragma once

#include <span>
#include <vector>

#include "hone/backend/cpu/list_schedule.h"
#include "hone/backend/cpu/machine_code.h"

namespace hone::backend::cpu {

// Returns a step per instruction. Parts of a register are one register, as XMM1 and ZMM1 are.
[[nodiscard]] std::vector<CoreStep> core_steps(std::span<const Instruction> code);

}  // namespace hone::backend::cpu
