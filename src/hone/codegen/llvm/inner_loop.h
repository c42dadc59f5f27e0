// codegen/llvm/inner_loop.h - what a kernel spends its time in: disassembles its object and
// describes, phase by phase, the loop with the most multiply-adds.
//
// A loop is what lies between a backward branch and its target, less the loops inside. Without
// multiply-adds the loop with the most other work counts, without a loop all of the function.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hone/base/status.h"
#include "hone/codegen/llvm/compiler.h"
#include "hone/target/target.h"

namespace hone::codegen {

// An instruction counts wherever it belongs: a multiply-add of a broadcast from memory is fma,
// load and broadcast.
struct InstructionMix {
  int all = 0;
  int fma = 0;         // multiply-adds, dot products included
  int arithmetic = 0;  // other work in vector registers
  int load = 0;        // reads memory
  int store = 0;       // writes it
  int broadcast = 0;   // one element to all lanes
  int shuffle = 0;     // moves elements between lanes
  int prefetch = 0;
  int scalar = 0;  // no vector register: addresses, counters, branches
};

struct InnerLoop {
  std::string symbol;             // of the phase
  bool is_loop = false;           // false: the function has no loop
  int64_t bytes = 0;              // of machine code
  std::vector<std::string> text;  // its instructions
  InstructionMix mix;
  int vector_registers = 0;  // distinct ones that occur
  int vector_bits = 0;       // of the widest that occurs
  int spills = 0;            // reads and writes of the stack
  // Cycles an iteration, all data in the closest cache.
  double port_cycles = 0;  // at least, by the target's own numbers: multiply-adds and loads
  double mca_cycles = 0;   // as LLVM's model of the processor simulates it; 0: it has none
};

// One per phase that runs with the model, in order; `object` and `phases` as compile() returned
// them.
[[nodiscard]] Result<std::vector<InnerLoop>> inner_loops(const std::string& object,
                                                         std::span<const Phase> phases,
                                                         const target::Target& target);

}  // namespace hone::codegen
