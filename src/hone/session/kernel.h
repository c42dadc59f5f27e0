// kernel.h - the machine code of a task with a schedule, and the weights that it packs at compile
// time.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "hone/backend/executable.h"
#include "hone/compute/dag.h"
#include "hone/schedule/step.h"
#include "hone/search/lower_schedule.h"
#include "hone/session/limit_tasks.h"
#include "hone/tensor/tensor.h"

namespace hone {

// The loop program of a task with a schedule.
struct LoweredKernel {
  search::ProgramPtr program;  // never null
  // For each param, true if a phase that runs with the model reads or writes it. Weights that only
  // prepare phases read need not be in the artifact.
  std::vector<bool> used;
};
using LoweredPtr = std::shared_ptr<const LoweredKernel>;

struct Kernel {
  LoweredPtr lowered;  // never null
  backend::Executable executable;
  // Which tiles of each phase a run of smaller sizes needs. It is empty unless the sizes are a
  // param of the program that its calls do not give.
  std::vector<ir::TileLimit> tiles = {};
  [[nodiscard]] const ir::Program& program() const { return *lowered->program; }
  [[nodiscard]] const std::vector<bool>& used() const { return lowered->used; }
};
using KernelPtr = std::shared_ptr<const Kernel>;

[[nodiscard]] LoweredPtr make_lowered(search::ProgramPtr program);
// Compiles a program by the back end of the target. Equal programs share one machine code with the
// same symbols, and those that differ only in how weights are packed share the code of the phases
// that run with the model. `steps` is the schedule that the program was made of.
[[nodiscard]] Result<Kernel> build_kernel(LoweredPtr lowered, const schedule::Steps& steps,
                                          const target::Target& target);
[[nodiscard]] Result<Kernel> build_kernel(const compute::Dag& dag, const schedule::Steps& steps,
                                          const target::Target& target);
// Compiles code that leaves out what a run of smaller sizes does not need, and that fetches weights
// ahead with the first rows, as a run may have few. `lowered` is the program of the schedule, which
// is compiled as it is if it computes nothing that a run may not need.
[[nodiscard]] Result<Kernel> build_limited(const compute::Dag& dag, const LoweredPtr& lowered,
                                           const schedule::Steps& steps,
                                           const target::Target& target,
                                           const KernelLimits& limits);

// Runs the prepare phases, by code for the machine that this process runs on. `arguments` has one
// tensor per param of the program; on entry, the constants of the model are set, and the others are
// empty. On return, every kPacked param and the constants of the Dag itself are set, too.
[[nodiscard]] Status prepare(const Kernel& kernel, const target::Target& target,
                             std::span<Tensor> arguments, int threads);

// Runs all phases on this machine, which the kernel must be for. `arguments` is as for prepare(),
// but with the inputs and outputs set, too; the outputs receive the results.
[[nodiscard]] Status run(const Kernel& kernel, std::span<Tensor> arguments, int threads);

// Runs the tiles first <= t < last; `thread` is the index of the thread.
using TileRun =
    std::function<Status(void* scratch, int64_t first_tile, int64_t last_tile, int thread)>;
// Runs all tiles of a phase on so many threads, each with `scratch_bytes` of scratch memory.
[[nodiscard]] Status run_tiles(const TileRun& run, int64_t num_tiles, int64_t scratch_bytes,
                               int threads);

}  // namespace hone
