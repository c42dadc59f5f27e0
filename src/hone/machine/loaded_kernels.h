// machine/loaded_kernels.h - the kernels of a model that was put together, in this process.
#pragma once

#include <memory>
#include <vector>

#include "hone/artifact/artifact.h"
#include "hone/backend/cpu/compiler.h"
#include "hone/runtime/kernel_abi.h"

namespace hone::machine {

struct LoadedKernels {
  std::vector<std::unique_ptr<backend::cpu::LoadedCode>> code;
  std::vector<hone_kernel> functions;  // per ArtifactSpec::kernel_symbols
};
// Loads the objects of `spec`; an error if the CPU of this process lacks a feature that they need.
[[nodiscard]] Result<LoadedKernels> load_kernels(const artifact::ArtifactSpec& spec);

}  // namespace hone::machine
