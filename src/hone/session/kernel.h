// kernel.h - a task with a schedule made into machine code, and the weights that it packs at
// compile time.
#pragma once

#include <memory>
#include <span>

#include "hone/codegen/llvm/compiler.h"
#include "hone/codegen/runtime/kernel_abi.h"
#include "hone/compute/dag.h"
#include "hone/schedule/step.h"
#include "hone/tensor/tensor.h"

namespace hone {

// A task with a schedule as a loop program.
struct LoweredKernel {
  ir::Program program;
  // Per param: whether a phase that runs with the model reads or writes it. Weights that only
  // prepare phases read need not be in the artifact.
  std::vector<bool> used;
};
using LoweredPtr = std::shared_ptr<const LoweredKernel>;

struct Kernel {
  LoweredPtr lowered;  // never null
  codegen::ObjectCode code;
  [[nodiscard]] const ir::Program& program() const { return lowered->program; }
  [[nodiscard]] const std::vector<bool>& used() const { return lowered->used; }
};
using KernelPtr = std::shared_ptr<const Kernel>;

[[nodiscard]] Result<LoweredPtr> lower_kernel(const compute::Dag& dag, const schedule::Steps& steps,
                                              const target::Target& target);
// Equal programs have one machine code with the same symbols (codegen/llvm/code_cache.h), and so
// have the phases that run of programs that differ only in how weights are packed.
[[nodiscard]] Result<Kernel> build_kernel(LoweredPtr lowered, const target::Target& target);
[[nodiscard]] Result<Kernel> build_kernel(const compute::Dag& dag, const schedule::Steps& steps,
                                          const target::Target& target);

// Runs the prepare phases on this machine. `arguments`: per param of the program, constants filled
// in, others default; on return every kPacked param is filled in too, and so are the constants that
// the Dag itself carries.
[[nodiscard]] Status prepare(const Kernel& kernel, const target::Target& target,
                             std::span<Tensor> arguments, int threads);

// All phases on this machine, which the kernel must be for. `arguments` as for prepare(), inputs
// and outputs filled in too; the outputs receive the results.
[[nodiscard]] Status run(const Kernel& kernel, std::span<Tensor> arguments, int threads);

// The tiles of one phase, on so many threads with `scratch_bytes` each.
[[nodiscard]] Status run_tiles(hone_kernel function, int64_t num_tiles, int64_t scratch_bytes,
                               void* const* args, int threads);

}  // namespace hone
