// backend/gpu_tools.h - finds the compiler and the files that compiling for GPUs uses beside Hone.
#pragma once

#include <string>

#include "hone/base/status.h"

namespace hone::backend {

// Returns whether NVRTC, the compiler of CUDA C, is there; the error says where it was looked for.
[[nodiscard]] Status find_cuda_compiler();
// Returns the folder of this user with code that was compiled before; "" if there is none.
[[nodiscard]] std::string gpu_code_folder();

}  // namespace hone::backend
