// kernel.h - the machine code of a task with a schedule, and the weights that it packs at compile
// time.
#pragma once

#include <memory>
#include <span>

#include "hone/backend/cpu/compiler.h"
#include "hone/compute/dag.h"
#include "hone/runtime/kernel_abi.h"
#include "hone/schedule/step.h"
#include "hone/tensor/tensor.h"

namespace hone {

// The loop program of a task with a schedule.
struct LoweredKernel {
  ir::Program program;
  // For each param, true if a phase that runs with the model reads or writes it. Weights that only
  // prepare phases read need not be in the artifact.
  std::vector<bool> used;
};
using LoweredPtr = std::shared_ptr<const LoweredKernel>;

struct Kernel {
  LoweredPtr lowered;  // never null
  backend::cpu::ObjectCode code;
  [[nodiscard]] const ir::Program& program() const { return lowered->program; }
  [[nodiscard]] const std::vector<bool>& used() const { return lowered->used; }
};
using KernelPtr = std::shared_ptr<const Kernel>;

[[nodiscard]] Result<LoweredPtr> lower_kernel(const compute::Dag& dag, const schedule::Steps& steps,
                                              const target::Target& target);
// Compiles a program. Equal programs share one machine code with the same symbols
// (backend/cpu/code_cache.h). Programs that differ only in how weights are packed share the code
// of the phases that run with the model.
[[nodiscard]] Result<Kernel> build_kernel(LoweredPtr lowered, const target::Target& target);
[[nodiscard]] Result<Kernel> build_kernel(const compute::Dag& dag, const schedule::Steps& steps,
                                          const target::Target& target);

// Runs the prepare phases on this machine. `arguments` has one tensor per param of the program; on
// entry, the constants of the model are set, and the others are empty. On return, every kPacked
// param and the constants of the Dag itself are set, too.
[[nodiscard]] Status prepare(const Kernel& kernel, const target::Target& target,
                             std::span<Tensor> arguments, int threads);

// Runs all phases on this machine, which the kernel must be for. `arguments` is as for prepare(),
// but with the inputs and outputs set, too; the outputs receive the results.
[[nodiscard]] Status run(const Kernel& kernel, std::span<Tensor> arguments, int threads);

// Runs the tiles of one phase on so many threads, each with `scratch_bytes` of scratch memory.
[[nodiscard]] Status run_tiles(hone_kernel function, int64_t num_tiles, int64_t scratch_bytes,
                               void* const* args, int threads);

}  // namespace hone
