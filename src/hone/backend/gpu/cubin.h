// backend/gpu/cubin.h - counts the instructions of kernels in CUDA's binaries, from sm_70 on. An
// instruction has 16 bytes, of which the lowest 12 bits say what it does; NVIDIA documents their
// names only (CUDA Binary Utilities), so the numbers are those that its compiler makes of known
// code (cuda_test.cc).
#pragma once

#include <string>
#include <string_view>

#include "hone/base/status.h"

namespace hone::backend::gpu {

struct CubinInstructions {
  int all = 0;  // without those that do nothing
  int fma = 0;  // multiply-adds of floats, halves and doubles
  int matrix = 0;
  int arithmetic = 0;  // other operations on floats, and functions
  int global_load = 0, global_store = 0;
  int shared_load = 0, shared_store = 0;
  int load_matrix = 0;  // those of the loads from shared memory that are ldmatrix
  int local = 0;        // loads and stores of arrays of a thread, and of registers that ran out
  int async_copy = 0;
  int barrier = 0;
  int64_t bytes = 0;  // size of the kernel's code
};

[[nodiscard]] Result<CubinInstructions> count_instructions(std::string_view cubin,
                                                           std::string_view symbol);

}  // namespace hone::backend::gpu
