// machine/loaded_kernels.h - the kernels of a model that was put together, in this process.
#pragma once

#include <vector>

#include "hone/artifact/artifact.h"
#include "hone/backend/backend.h"
#include "hone/runtime/kernel_abi.h"

namespace hone::machine {

struct LoadedKernels {
  std::vector<backend::LoadedPtr> code;
  std::vector<hone_kernel> functions;  // per ArtifactSpec::kernel_symbols; null on a device
};
// Loads the executables of `spec`; an error if the CPU of this process lacks the instruction set or
// a feature that they need.
[[nodiscard]] Result<LoadedKernels> load_kernels(const artifact::ArtifactSpec& spec);

}  // namespace hone::machine
