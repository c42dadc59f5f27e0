// backend/cpu/match_loops.h - finds the loop of the program that a loop of the machine code is.
//
// Source: Tuna (Wang et al. 2021), algorithm 1: both in pre-order, matched by trip count. Here the
// nesting must agree as well. Unrolled loops have no loop of their own; a vectorized one has as
// many iterations as it has groups of vectors; what LLVM removed is passed over, and a loop that
// fits none keeps no name.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hone/backend/cpu/control_run.h"
#include "hone/backend/cpu/flow_graph.h"
#include "hone/ir/stmt.h"
#include "hone/target/cpu.h"

namespace hone::backend::cpu {

struct MatchedLoop {
  std::string name;   // such as "k_1 in 0..256"; empty if none fits
  int64_t trips = 0;  // iterations by the program; 0 if they are not one number
};

// Returns one for each loop of the graph. `tiles` is how many tiles ran.
[[nodiscard]] std::vector<MatchedLoop> match_loops(const FlowGraph& graph,
                                                   std::span<const LoopRun> runs,
                                                   const ir::Stmt& phase, int64_t tiles,
                                                   const target::Cpu& target);

}  // namespace hone::backend::cpu
