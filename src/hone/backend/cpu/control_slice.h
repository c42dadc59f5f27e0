// backend/cpu/control_slice.h - the scalar instructions of a function, and those of them on which
// its branches depend.
#pragma once

#include <vector>

#include "hone/backend/cpu/flow_graph.h"
#include "hone/backend/cpu/scalar_inst.h"
#include "hone/backend/cpu/stack_words.h"
#include "hone/target/cpu.h"

namespace hone::backend::cpu {

// A branch whose condition is not known is taken if this variable has one of these bits (`if_set`)
// or none of them; it goes straight on if that is not known either.
struct BranchGuess {
  Variable variable = kNoVariable;
  uint64_t bits = 0;
  bool if_set = true;
};

struct ScalarBlock {
  std::vector<ScalarInst> insts;
  Condition condition = Condition::kAlways;  // decides the branch at its end
  BranchGuess guess = {};
};

struct ScalarCode {
  std::vector<ScalarBlock> blocks;  // those of the graph
  StackWords words;
  StackPlace end;  // behind the last block
};
// Code of architectures whose instructions are not known has none, and unknown conditions.
[[nodiscard]] ScalarCode scalar_code(const std::vector<Instruction>& body, const FlowGraph& graph,
                                     int64_t stack_pointer, const target::Cpu& target);

struct ControlSlice {
  std::vector<ScalarBlock> blocks;
  // One list for each loop: the variables that decide what it does, those that it may write, and
  // the numbers of the loop and of those inside.
  std::vector<std::vector<Variable>> read, written;
  std::vector<std::vector<size_t>> inside;
};
[[nodiscard]] ControlSlice control_slice(const FlowGraph& graph, const ScalarCode& code);

}  // namespace hone::backend::cpu
