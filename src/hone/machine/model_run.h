// machine/model_run.h - a model in this process, run as its library would be: the same plan, memory
// and threads, without a file.
#pragma once

#include <memory>
#include <span>

#include "hone/machine/loaded_kernels.h"
#include "hone/machine/machine.h"
#include "hone/runtime/model.h"
#include "hone/tensor/tensor.h"

namespace hone::machine {

class ModelRun final : public TimedModel {
 public:
  // Copies the weights; `spec` may be gone afterwards. An error if this machine cannot run it.
  [[nodiscard]] static Result<std::unique_ptr<TimedModel>> create(
      const artifact::ArtifactSpec& spec, int threads);
  [[nodiscard]] Result<std::vector<double>> run(std::span<const int32_t> steps) override;

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

}  // namespace hone::machine
