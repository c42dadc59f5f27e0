// backend/gpu/cubin.h - reads the resources and counts the instructions of kernels in CUDA's
// binaries, from sm_70 on. An instruction has 16 bytes, of which the lowest 12 bits say what it
// does; NVIDIA documents their names only (CUDA Binary Utilities), so the numbers are those that
// its compiler makes of known code (cubin_test.cc). Registers and stack are attributes of a kernel
// in the section .nv.info, whose numbers `cuobjdump -elf` shows beside their names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hone/backend/gpu/code_notes.h"
#include "hone/base/status.h"
#include "hone/code_figures.h"

namespace hone::backend::gpu {

struct CubinInstructions {
  int all = 0;  // without those that do nothing
  int fma = 0;  // multiply-adds of floats, halves and doubles
  int matrix = 0;
  int arithmetic = 0;  // other operations on floats, and functions
  int global_load = 0, global_store = 0;
  int shared_load = 0, shared_store = 0;
  int load_matrix = 0;      // those of the loads from shared memory that are ldmatrix
  int local = 0;            // loads and stores of arrays of a thread, and of registers that ran out
  int local_places = 0;     // those of them whose place in the stack the thread computes
  int64_t fixed_bytes = 0;  // bytes that stores write to the other places
  int async_copy = 0;
  int barrier = 0;
  int64_t bytes = 0;  // size of the kernel's code
};

[[nodiscard]] Result<CubinInstructions> count_instructions(std::string_view cubin,
                                                           std::string_view symbol);
// Returns the resources of all kernels, but for shared memory that a launch asks for.
[[nodiscard]] Result<std::vector<KernelNote>> read_kernels(std::string_view cubin);
// Returns resources and instructions of the kernels of a cubin as those of one candidate.
[[nodiscard]] Result<CodeFigures> read_figures(std::string_view cubin,
                                               const std::vector<KernelNote>& kernels);

}  // namespace hone::backend::gpu
