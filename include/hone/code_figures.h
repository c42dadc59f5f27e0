// code_figures.h - the resources that the compiled code of a schedule takes on a GPU, and what it
// consists of, as the binary says. Of several kernels, a resource is that of the kernel that takes
// most, and instructions are those of all. They are counted in the code, not while it runs.
#pragma once

#include <cstdint>

namespace hone {

struct CodeFigures {
  int64_t registers = 0;    // of a thread, of 32 bits
  int64_t stack_bytes = 0;  // of a thread: its arrays, and registers that ran out
  // The bytes that a thread's instructions write because registers ran out. 0 if it has arrays
  // there, as the two then look alike.
  int64_t spill_bytes = 0;
  int64_t shared_bytes = 0;  // shared memory of a block
  int64_t instructions = 0;  // without those that do nothing
  int64_t multiply_adds = 0;
  int64_t matrix = 0;  // instructions that multiply matrices
  int64_t global_loads = 0, global_stores = 0;
  int64_t shared_loads = 0, shared_stores = 0;
  int64_t local_accesses = 0;  // loads and stores of the stack
  int64_t async_copies = 0;
  int64_t barriers = 0;

  friend bool operator==(const CodeFigures&, const CodeFigures&) = default;
};

// Calls visit(name, figure) for each figure, with its name in stores and files, which never
// changes.
template <typename Figures, typename Visitor>
void for_each_figure(Figures& code, const Visitor& visit) {
  visit("registers", code.registers);
  visit("stack_bytes", code.stack_bytes);
  visit("spill_bytes", code.spill_bytes);
  visit("shared_bytes", code.shared_bytes);
  visit("instructions", code.instructions);
  visit("multiply_adds", code.multiply_adds);
  visit("matrix_instructions", code.matrix);
  visit("global_loads", code.global_loads);
  visit("global_stores", code.global_stores);
  visit("shared_loads", code.shared_loads);
  visit("shared_stores", code.shared_stores);
  visit("local_accesses", code.local_accesses);
  visit("async_copies", code.async_copies);
  visit("barriers", code.barriers);
}

}  // namespace hone
