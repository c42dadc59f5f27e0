// loaded_kernel.h - a kernel for this machine that runs more than once: its machine code stays
// loaded.
#pragma once

#include "hone/backend/backend.h"
#include "hone/session/kernel.h"

namespace hone {

class LoadedKernel {
 public:
  [[nodiscard]] static Result<LoadedKernel> load(Kernel kernel);
  // Like run() of kernel.h.
  [[nodiscard]] Status run(std::span<Tensor> arguments, int threads) const;
  [[nodiscard]] const ir::Program& program() const { return kernel_.program(); }

 private:
  LoadedKernel(Kernel kernel, backend::LoadedPtr code)
      : kernel_(std::move(kernel)), code_(std::move(code)) {}
  Kernel kernel_;
  backend::LoadedPtr code_;
};

}  // namespace hone
