// backend/cpu/control_run.h - counts how often each block of a function runs, without running it:
// it executes only the scalar instructions on which branches depend (its control slice), and of
// loops that are entered again with the same values it knows the result. So a nest of loops that
// do not depend on one another costs the sum of their trip counts, not the product.
//
// Source: Tuna (Wang et al. 2021), section III.A.1, takes trip counts from the program alone
// (algorithm 1); the slice also counts tails, guards and bounds that depend on outer loops.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "hone/backend/cpu/flow_graph.h"
#include "hone/backend/cpu/scalar_inst.h"
#include "hone/target/cpu.h"

namespace hone::backend::cpu {

// The registers and the stack where a function begins. Pointers to data are unknown.
struct CallState {
  int64_t stack_pointer = 0;
  std::map<Variable, ScalarValue> registers;
  std::map<int64_t, ScalarValue> stack;  // by address
};

// Returns what a kernel's entry point gets (runtime/kernel_abi.h): tiles first.. last - 1.
[[nodiscard]] CallState kernel_call(int64_t first_tile, int64_t last_tile,
                                    const target::Cpu& target);
// Returns what the function that this code calls last gets. The code must be a single block.
[[nodiscard]] Result<CallState> state_at_call(const std::vector<Instruction>& body,
                                              const CallState& start, const target::Cpu& target);

struct LoopRun {
  int64_t entries = 0, iterations = 0;  // in all
  bool known = true;  // false: the code does not tell when it ends, `trips` said it
};

struct ControlRun {
  std::vector<int64_t> blocks;  // how often each one runs
  std::vector<LoopRun> loops;
  std::vector<uint64_t> unknown_branches;  // addresses of branches that are taken by assumption
};

// `trips` has the iterations of each loop for those whose end the code does not tell; 1 if empty.
// An unknown branch within a loop goes straight on, unless ScalarBlock::guess says otherwise. The
// error of code that takes too many steps to follow is kUnsupported.
[[nodiscard]] Result<ControlRun> run_control(const std::vector<Instruction>& body,
                                             const FlowGraph& graph, const CallState& start,
                                             std::span<const int64_t> trips,
                                             const target::Cpu& target);

}  // namespace hone::backend::cpu
