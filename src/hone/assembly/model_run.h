// model_run.h - an assembled model in this process, run as its artifact would be: the same plan,
// memory and threads, without a file. Of an assembly with several tasks for one place a run is told
// which ones it consists of.
#pragma once

#include <memory>
#include <span>

#include "hone/assembly/assemble.h"
#include "hone/codegen/runtime/model.h"

namespace hone {

class ModelRun {
 public:
  // Copies the weights; the assembly may be gone afterwards. An error if this machine cannot run
  // it. Inputs are zeros.
  [[nodiscard]] static Result<ModelRun> create(const Assembly& assembly, int threads);
  // Runs these of the assembly's steps, in order; their seconds.
  [[nodiscard]] Result<std::vector<double>> run(std::span<const int32_t> steps);

 private:
  using ModelPtr = std::unique_ptr<runtime::Model, void (*)(runtime::Model*)>;
  ModelRun() = default;
  LoadedKernels kernels_;
  std::vector<uint64_t> plan_;
  Tensor weights_;
  std::vector<Tensor> inputs_, outputs_;
  std::vector<const void*> from_;
  std::vector<void*> to_;
  ModelPtr model_ = {nullptr, runtime::model_destroy};
};

}  // namespace hone
