// backend/cpu/flow_graph.h - the blocks of a function of machine code, and its loops: for each edge
// back to a block that dominates it, the blocks from which that edge is reached (A. Aho et al.,
// "Compilers", section 9.6).
#pragma once

#include <vector>

#include "hone/backend/cpu/machine_code.h"

namespace hone::backend::cpu {

inline constexpr int kOutside = -1;  // no block, or no loop

struct CodeBlock {
  size_t first = 0, last = 0;  // instructions first.. last of the function
  // Blocks that follow. Of a conditional branch, first the one behind it, then its target. kOutside
  // is the end of the function.
  std::vector<int> next;
  int loop = kOutside;  // the innermost loop that it is in
};

struct MachineLoop {
  int header = 0;
  int parent = kOutside;    // the loop around it
  int depth = 0;            // number of loops around it
  std::vector<int> blocks;  // in ascending order, with those of the loops inside
};

struct FlowGraph {
  std::vector<CodeBlock> blocks;   // in the order of addresses; block 0 is the entry
  std::vector<MachineLoop> loops;  // in the order of addresses, outer ones first
  [[nodiscard]] bool contains(int loop, int block) const;
};

// The error of code with jumps to computed places, or into the middle of a loop, is kUnsupported.
[[nodiscard]] Result<FlowGraph> flow_graph(const std::vector<Instruction>& body);

}  // namespace hone::backend::cpu
