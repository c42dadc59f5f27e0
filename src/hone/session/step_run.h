// step_run.h - runs an assembled model in this process, one task after the other, and gives access
// to its memory in between. Kernels, weights and memory plan are those of the artifact; only the
// file and the thread pool are missing.
#pragma once

#include <functional>
#include <span>

#include "hone/machine/loaded_kernels.h"
#include "hone/session/assemble.h"

namespace hone {

class StepRun {
 public:
  // It is an error if this machine cannot run the kernels.
  [[nodiscard]] static Result<StepRun> create(const Assembly& assembly, int threads);
  // Runs the model, and calls `on_call` with its index after each of TaskList::calls that has code,
  // which those of a loop do in each turn.
  // Memory that no task has written holds NaN or -1. If the shapes of its inputs vary, these are
  // the largest, and behind them is what `hone.sizes` holds; kernels run as many tiles as that
  // needs.
  [[nodiscard]] Status run(std::span<const Tensor> inputs,
                           const std::function<Status(int call)>& on_call);
  // Returns the address of a buffer of TaskList::buffers during a callback; null for a buffer of
  // the arena that no task uses.
  [[nodiscard]] const void* memory(const graph::Buffer& buffer, int index) const;

 private:
  [[nodiscard]] Status run_step(size_t step, const std::function<Status(int call)>& on_call);
  StepRun(const Assembly& assembly, int threads) : assembly_(&assembly), threads_(threads) {}
  const Assembly* assembly_;  // must outlive this
  int threads_;
  machine::LoadedKernels kernels_;
  std::vector<artifact::KernelPlace> places_;  // each kernel's
  std::vector<backend::LoadedPtr> programs_;   // code for a device, by executable; null for others
  std::vector<Tensor> inputs_, outputs_;
  Tensor arena_;
};

}  // namespace hone
