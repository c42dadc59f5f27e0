// backend/cpu/inner_loop.h - describes the loop in which a kernel spends its time. It disassembles
// the object and finds, per phase, the loop with the most multiply-adds.
//
// A loop is the code between a backward branch and its target, without the loops inside. If there
// are no multiply-adds, the loop with the most other work counts; if there is no loop, the whole
// function counts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hone/backend/cpu/compiler.h"
#include "hone/base/status.h"
#include "hone/target/target.h"

namespace hone::backend::cpu {

// An instruction counts in every class that it belongs to: a multiply-add with a broadcast from
// memory is fma, load and broadcast.
struct InstructionMix {
  int all = 0;
  int fma = 0;         // multiply-adds, dot products included
  int arithmetic = 0;  // other operations on vector registers
  int load = 0;        // reads memory
  int store = 0;       // writes memory
  int broadcast = 0;   // copies one element to all lanes
  int shuffle = 0;     // moves elements between lanes
  int prefetch = 0;
  int scalar = 0;  // uses no vector register: addresses, counters, branches
};

struct InnerLoop {
  std::string symbol;             // symbol of the phase
  bool is_loop = false;           // false if the function has no loop
  int64_t bytes = 0;              // size of its machine code
  std::vector<std::string> text;  // its instructions
  InstructionMix mix;
  int vector_registers = 0;  // number of different registers
  int vector_bits = 0;       // width of the widest vector register
  int spills = 0;            // reads and writes of stack memory
  // Cycles per iteration if all data is in the closest cache.
  double port_cycles = 0;  // lower bound by the target's numbers for multiply-adds and loads
  double mca_cycles = 0;   // as simulated by LLVM's model of the processor; 0 if there is none
};

// Returns one loop per phase that runs with the model, in order. `object` and `phases` are as
// compile() returned them.
[[nodiscard]] Result<std::vector<InnerLoop>> inner_loops(const std::string& object,
                                                         std::span<const Phase> phases,
                                                         const target::Target& target);

}  // namespace hone::backend::cpu
