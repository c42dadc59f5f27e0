// backend/cpu/instruction_mix.h - puts instructions into the classes of an InstructionMix.
#pragma once

#include <optional>
#include <string_view>

#include "hone/backend/cpu/machine_code.h"
#include "hone/explain.h"

namespace hone::backend::cpu {

struct VectorRegister {
  int number, bits;
};
// Returns 12 and 512 of "ZMM12", and nothing of other registers.
[[nodiscard]] std::optional<VectorRegister> vector_register(std::string_view name);

// Adds one instruction.
void count(const Instruction& i, InstructionMix& mix);
// Adds a mix so many times.
void add(InstructionMix& sum, const InstructionMix& mix, int64_t times);

}  // namespace hone::backend::cpu
