// backend/gpu/gpu_backend.h - the back end of GPUs. The code of its executables is a container
// (backend/device_code.h) with OpenCL C, or with the code of one architecture of CUDA, and notes
// about it. Phases that prepare constants are code for the CPU of this machine.
#pragma once

#include <memory>

#include "hone/backend/backend.h"

namespace hone::backend::gpu {

[[nodiscard]] std::shared_ptr<const Backend> make_backend();

}  // namespace hone::backend::gpu
