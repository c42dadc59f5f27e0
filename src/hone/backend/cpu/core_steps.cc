#include "hone/backend/cpu/core_steps.h"

#include <algorithm>
#include <map>
#include <string>

#include "hone/backend/cpu/instruction_mix.h"

namespace hone::backend::cpu {
namespace {

constexpr int kBitsOfAPort = 256;  // vectors of more bits are wide

// Names of registers whose parts are one: the number and the kind.
std::string whole_register(std::string_view name) {
  if (const auto vector = vector_register(name)) return "v" + std::to_string(vector->number);
  if (name.size() > 1 && (name[0] == 'X' || name[0] == 'W') && name[1] >= '0' && name[1] <= '9')
    return "x" + std::string(name.substr(1));
  if (name.size() > 2 && name[0] == 'R' && name[1] >= '0' && name[1] <= '9') {
    const std::string text(name);
    return text.substr(0, text.find_first_of("DWB", 1));
  }
  if (name.size() == 3 && name[0] == 'E') return "R" + std::string(name.substr(1));
  return std::string(name);
}

class Registers {
 public:
  size_t number(const std::string& name) {
    return numbers_.try_emplace(name, numbers_.size()).first->second;
  }

 private:
  std::map<std::string, size_t> numbers_;
};

Unit unit_of(const Instruction& i, const InstructionMix& mix) {
  if (mix.fma > 0) return Unit::kFma;
  if (mix.arithmetic > 0) return Unit::kVector;
  if (mix.shuffle > 0 || (mix.broadcast > 0 && !i.loads)) return Unit::kShuffle;
  if (mix.branch > 0) return Unit::kBranch;
  if (mix.scalar == 0 || mix.prefetch > 0) return Unit::kNone;  // moves
  const std::string name = i.mnemonic();
  if (name.starts_with("imul") || name.starts_with("mul") || name.starts_with("madd"))
    return Unit::kMultiply;
  return name.starts_with("mov") || name.starts_with("ldr") || name.starts_with("str")
             ? Unit::kNone
             : Unit::kScalar;
}

// An exclusive or of a register with itself depends on nothing.
bool clears(const Instruction& i) {
  const std::string name = i.mnemonic();
  return i.registers.size() >= 3 && name.find("xor") != std::string::npos &&
         i.registers[1] == i.registers[2];
}

bool contains(const std::vector<size_t>& list, size_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

void add_operands(const Instruction& i, Registers& registers, CoreStep& step) {
  // Arm's loads read addresses only, without being told so.
  const bool only_loads = step.loads && !step.stores && step.unit == Unit::kNone;
  for (size_t r = i.num_results; r < i.operands.size(); ++r) {
    const CodeOperand& operand = i.operands[r];
    if (operand.reg.empty()) continue;
    const size_t number = registers.number(whole_register(operand.reg));
    const bool address = operand.is_address || only_loads;
    (address ? step.addresses : step.reads).push_back(number);
  }
  for (const std::string_view name : i.implicit_uses)
    step.reads.push_back(registers.number(whole_register(name)));
}

CoreStep step_of(const Instruction& i, Registers& registers) {
  InstructionMix mix;
  count(i, mix);
  CoreStep step;
  step.unit = unit_of(i, mix);
  step.loads = i.loads || mix.prefetch > 0;
  step.stores = i.stores && mix.prefetch == 0;
  for (const std::string& name : i.registers) {
    const auto vector = vector_register(name);
    step.wide = step.wide || (vector && vector->bits > kBitsOfAPort);
  }
  if (!clears(i)) add_operands(i, registers, step);
  const bool accesses = step.unit == Unit::kNone && (step.loads || step.stores);
  for (const std::string_view name : i.defines) {
    const size_t number = registers.number(whole_register(name));
    const bool advances = accesses && !vector_register(name) &&
                          (contains(step.addresses, number) || contains(step.reads, number));
    (advances ? step.advances : step.writes).push_back(number);
  }
  return step;
}

}  // namespace

std::vector<CoreStep> core_steps(std::span<const Instruction> code) {
  Registers registers;
  std::vector<CoreStep> steps;
  for (const Instruction& i : code) steps.push_back(step_of(i, registers));
  return steps;
}

}  // namespace hone::backend::cpu
