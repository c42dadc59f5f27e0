// backend/cpu/single_step_testing.h - counts the instructions that a kernel executes, by stepping
// through it in a child process: the oracle of backend/cpu/count_code.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "hone/runtime/kernel_abi.h"
#include "hone/tensor/tensor.h"

namespace hone::backend::cpu {

// Runs the tiles first.. last - 1 and returns the instructions from the first one of the kernel to
// its return; nothing if this system has no traps behind single instructions. It takes a signal,
// some microseconds, for each, and gives up (-1) behind `limit` of them.
[[nodiscard]] std::optional<int64_t> count_by_steps(hone_kernel kernel, std::span<Tensor> args,
                                                    int64_t scratch_bytes, int64_t first_tile,
                                                    int64_t last_tile, int64_t limit);

}  // namespace hone::backend::cpu
