// backend/gpu/loaded_program.h - runs code of the back end of GPUs on a device of this machine,
// with arguments in host memory: they are copied to the device and back, for tests and
// verification. The device of each interface is opened once in a process.
#pragma once

#include "hone/backend/backend.h"

namespace hone::backend::gpu {

// Loads the code on the first device that has its interface, which CUDA or OpenCL names first.
[[nodiscard]] Result<LoadedPtr> load_program(const Executable& executable);

}  // namespace hone::backend::gpu
