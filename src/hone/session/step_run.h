// step_run.h - runs an assembled model in this process, one task after the other, and lets its
// memory be looked at in between. Kernels, weights and memory plan are those of the artifact; only
// the file and the pool of threads are missing.
#pragma once

#include <functional>
#include <span>

#include "hone/machine/loaded_kernels.h"
#include "hone/session/assemble.h"

namespace hone {

class StepRun {
 public:
  // An error if this machine cannot run the kernels.
  [[nodiscard]] static Result<StepRun> create(const Assembly& assembly, int threads);
  // Calls `on_call` after each TaskList::calls that has code, with its index. Memory that no task
  // has written holds NaN or -1.
  [[nodiscard]] Status run(std::span<const Tensor> inputs,
                           const std::function<Status(int call)>& on_call);
  // Where a buffer of TaskList::buffers is, at the moment of a callback.
  // Null for one of the arena that no task uses.
  [[nodiscard]] const void* memory(const graph::Buffer& buffer, int index) const;

 private:
  StepRun(const Assembly& assembly, int threads) : assembly_(&assembly), threads_(threads) {}
  const Assembly* assembly_;  // outlives this
  int threads_;
  machine::LoadedKernels kernels_;
  std::vector<Tensor> inputs_, outputs_;
  Tensor arena_;
};

}  // namespace hone
